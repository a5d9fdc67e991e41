"""A child that is bound to its parent never outlives it, however the two race."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_ORPHANED = """
import os, sys, time
from easel.run.tree import die_with
parent = os.getpid()
if os.fork() == 0:
    while {late} and os.getppid() == parent:
        time.sleep(0.001)
    die_with(parent)
    print("lives", flush=True)
    os.read(0, 1)
    os._exit(0)
if not {late}:
    time.sleep(60)
os._exit(0)
"""


def _start(late: bool) -> subprocess.Popen[bytes]:
    script = _ORPHANED.format(late=late)
    return subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux's parent-death signal")
def test_a_child_whose_parent_died_before_it_could_ask_ends_at_once() -> None:
    parent = _start(late=True)
    out, _ = parent.communicate(timeout=60)  # ends only when nobody holds the pipe any more
    assert out == b""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux's parent-death signal")
def test_a_child_that_asked_ends_with_its_parent() -> None:
    parent = _start(late=False)
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"lives\n"
    os.kill(parent.pid, 9)
    assert parent.stdout.read() == b""
    parent.communicate(timeout=60)
