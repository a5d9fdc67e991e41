"""Trials that share a process may take what they were given together, until the last of them has ended."""

from __future__ import annotations

import os
import selectors
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from easel.clock import SystemClock
from easel.declare.job import Trial
from easel.declare.resources import Resources, Room
from easel.records.attempt import EndReason
from easel.run.attempt_runner import AttemptRunner
from easel.run.attempts import Attempt, Phase
from easel.run.cgroup import Cgroups, OpenCage
from easel.run.launch import Folders
from easel.run.order import Order
from easel.run.sample import resident_mb
from easel.run.warm import WarmProcess
from easel.run.worker_config import WorkerConfig


class ThisProcess(WarmProcess):
    """Stands for the process of the trials; it is only noted that it was killed."""

    killed = False

    def kill(self) -> None:
        self.killed = True


@pytest.fixture
def shared() -> Iterator[ThisProcess]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ThisProcess(os.getpid(), -1, ours, OpenCage())


@pytest.fixture
def runner(tmp_path: Path) -> AttemptRunner:
    config = WorkerConfig(tmp_path, "here", Room(8.0, 64_000), f"file:{tmp_path}/blobs", warm=False)
    with selectors.DefaultSelector() as selector:
        return AttemptRunner(config, SystemClock(), selector, Cgroups("none", tmp_path), None)


def trials(runner: AttemptRunner, shared: ThisProcess, memory_mb: int) -> list[Attempt]:
    """Three trials that were begun together in a process."""
    made = []
    resources = Resources(0.5, memory_mb)
    for name in ("first", "second", "third"):
        order = Order(f"job_{name}", 1, "astro", Trial("x:y", {}), resources)
        attempt = Attempt(order, Folders(runner.config.attempts / order.key), Phase.RUNNING, ready=shared)
        runner.watched[attempt.key] = attempt
        made.append(attempt)
    shared.limits = Resources(1.5, 3 * memory_mb)
    return made


def test_the_last_of_a_pack_may_keep_what_the_others_took(runner: AttemptRunner, shared: ThisProcess) -> None:
    held = resident_mb(os.getpid())
    pack = trials(runner, shared, int(held / 2))  # more than one was given, less than all were
    for ended in pack[1:]:
        ended.ready = None
    runner.enforce_limits()
    assert pack[0].stop_reason is None
    assert not shared.killed


def test_a_pack_that_takes_more_than_all_were_given_is_killed_and_none_is_blamed(
    runner: AttemptRunner, shared: ThisProcess
) -> None:
    pack = trials(runner, shared, 16)
    runner.enforce_limits()
    assert shared.killed
    assert [each.stop_reason for each in pack] == [None] * 3
    for ended in pack[1:]:
        ended.ready = None
    runner.enforce_limits()
    assert pack[0].stop_reason == (EndReason.MEMORY_LIMIT, "the memory limit of 48 MB was reached")
