"""What a worker that an engine placed leaves on its machine."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from easel.run.journal import Journal, born
from easel.run.remote.placed_home import placed_home
from easel.testing.clock import FakeClock


def left_by_a_killed_worker(home: Path) -> Path:
    """Its locks lie there, and nobody holds them."""
    (home / "run" / "attempts").mkdir(parents=True)
    (home / "cache").mkdir()
    (home / "cache" / "blob").write_bytes(b"x" * 1000)
    for name in ("placed.lock", "worker.lock"):
        (home / "run" / name).touch()
    return home


def test_the_home_goes_with_its_worker(tmp_path: Path) -> None:
    home = tmp_path / "slurm-1"
    with placed_home(home):
        (home / "cache").mkdir()
        (home / "cache" / "blob").write_bytes(b"x")
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_worker_left_goes_with_the_next_worker_of_the_machine(tmp_path: Path) -> None:
    left = left_by_a_killed_worker(tmp_path / "slurm-1")
    with placed_home(tmp_path / "slurm-2"):
        assert not left.exists()


def test_a_home_in_which_a_worker_lives_is_left_alone(tmp_path: Path) -> None:
    for held in ("placed.lock", "worker.lock"):
        home = left_by_a_killed_worker(tmp_path / f"slurm-{held}")
        lock = os.open(home / "run" / held, os.O_RDWR)
        fcntl.flock(lock, fcntl.LOCK_EX)
        with placed_home(tmp_path / "slurm-2"):
            assert (home / "cache" / "blob").exists()
        os.close(lock)


def test_a_home_in_which_an_attempt_still_runs_is_left_alone(tmp_path: Path) -> None:
    home = left_by_a_killed_worker(tmp_path / "slurm-1")
    journal = home / "run" / "attempts" / "job_1.1.journal"
    Journal(journal, FakeClock()).append(born(os.getpid()))
    with placed_home(tmp_path / "slurm-2"):
        assert journal.exists()


def test_folders_that_are_no_homes_of_placed_workers_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "somebody" / "run").mkdir(parents=True)
    (tmp_path / "link").symlink_to(left_by_a_killed_worker(tmp_path / "elsewhere" / "slurm-1"))
    with placed_home(tmp_path / "slurm-2"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "link", "somebody"]
    assert (tmp_path / "elsewhere" / "slurm-1" / "cache" / "blob").exists()
