"""What killed workers leave of their control groups, in a folder that stands for the kernel's."""

from __future__ import annotations

from pathlib import Path

import pytest

from easel.clock import SystemClock
from easel.run.cgroup import Cgroups

KINDS = ("cpu", "memory")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for kind in KINDS:
        (tmp_path / kind).mkdir()
    return tmp_path


def left(root: Path) -> set[str]:
    return {str(each.relative_to(root)) for kind in KINDS for each in (root / kind).rglob("*")}


def test_what_a_dead_worker_left_empty_is_swept_away_by_the_next_one(root: Path) -> None:
    for kind in KINDS:
        (root / kind / "easel-dead-1" / "job.1").mkdir(parents=True)
        (root / kind / "somebody").mkdir()
    cgroups = Cgroups("easel-new", root)
    cgroups.sweep()
    assert left(root) == {f"{kind}/{name}" for kind in KINDS for name in ("easel-new", "somebody")}


def test_what_a_worker_uses_is_not_swept_though_it_is_empty_now(root: Path) -> None:
    idle = Cgroups("easel-idle", root)
    Cgroups("easel-new", root).sweep()
    assert left(root) == {f"{kind}/{name}" for kind in KINDS for name in ("easel-new", "easel-idle")}
    idle.remove(SystemClock())
    assert left(root) == {f"{kind}/easel-new" for kind in KINDS}


def test_a_group_with_processes_stays_for_whoever_finds_them_again(root: Path) -> None:
    busy = root / "cpu" / "easel-dead" / "job.1"
    busy.mkdir(parents=True)
    (busy / "cgroup.procs").write_text("1\n")  # the kernel refuses to remove such a one; here the file does
    Cgroups("easel-new", root).sweep()
    assert busy.is_dir()
