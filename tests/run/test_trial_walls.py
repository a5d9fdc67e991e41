"""What a process behind the walls of trials may still do, and what it may not."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from easel.run import landlock
from easel.run.trial_walls import apart, can_wall_in, system_rules, wall_in

pytestmark = pytest.mark.skipif(not can_wall_in(), reason="this kernel cannot wall in trials")


def behind_walls(work: Any, own: Path, home: Path, readable: tuple[Path, ...] = ()) -> dict[str, Any]:
    """What `work` answers in a child behind the walls, which may write to `own`."""
    heard: list[dict[str, Any]] = []
    allowed = [(own, landlock.WRITE), *((path, landlock.READ) for path in readable), *system_rules(home)]
    assert apart(lambda tell: tell(work()), lambda: wall_in(allowed), heard.append)
    return heard[0]


def _writes(path: str, text: str) -> str:
    try:
        Path(path).write_text(text)
    except OSError as error:
        return type(error).__name__
    return "written"


def test_threads_may_be_named_as_cuda_does_it_and_other_processes_may_not(tmp_path: Path) -> None:
    """CUDA answers that there is no GPU (error 304) where it cannot: as long as that was so, networks of the service
    trained on the processor."""
    own, home, parent = tmp_path / "own", tmp_path / "home", os.getpid()
    own.mkdir()
    home.mkdir()

    def work() -> dict[str, Any]:
        named: list[str] = []

        def name_it() -> None:
            told = f"/proc/self/task/{threading.get_native_id()}/comm"
            named.extend([_writes(told, "cuda-thread"), Path(told).read_text().strip()])

        one = threading.Thread(target=name_it)
        one.start()
        one.join()
        return {
            "own": named,
            "main": _writes(f"/proc/self/task/{os.getpid()}/comm", "main"),
            "parent": _writes(f"/proc/{parent}/task/{parent}/comm", "mine"),
            "setting": _writes("/proc/sys/kernel/core_pattern", "|/bin/sh"),
            "home": _writes(str(home / "file"), "text"),
            "folder": _writes(str(own / "file"), "text"),
        }

    assert behind_walls(work, own, home) == {
        "own": ["written", "cuda-thread"],
        "main": "written",
        "parent": "PermissionError",
        "setting": "PermissionError",
        "home": "PermissionError",
        "folder": "written",
    }
