"""What a worker that an engine placed leaves on its machine."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

from easel.run.journal import Journal, born
from easel.run.remote.placed_home import placed_home, remove_deserted
from easel.testing.clock import FakeClock
from easel.testing.engine import until


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


def test_a_home_whose_worker_never_came_up_goes_when_it_is_old(tmp_path: Path) -> None:
    for name, age_s in (("slurm-old", 3600), ("slurm-new", 0)):
        home = left_by_a_killed_worker(tmp_path / name)
        (home / "run" / "worker.lock").unlink()
        made = time.time() - age_s
        os.utime(home / "run" / "placed.lock", (made, made))
    with placed_home(tmp_path / "slurm-2"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["slurm-new"]


def test_a_worker_leaves_its_home_to_a_relay_that_lives(tmp_path: Path) -> None:
    home = left_by_a_killed_worker(tmp_path / "slurm-1")
    lock = os.open(home / "run" / "placed.lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    remove_deserted(home, FakeClock())
    assert home.exists()
    os.close(lock)
    remove_deserted(home, FakeClock())
    assert not home.exists()


def test_a_worker_leaves_a_home_in_which_an_attempt_does_not_end(tmp_path: Path) -> None:
    home = left_by_a_killed_worker(tmp_path / "slurm-1")
    Journal(home / "run" / "attempts" / "job_1.1.journal", FakeClock()).append(born(os.getpid()))
    remove_deserted(home, FakeClock())
    assert home.exists()


RELAY = """
import fcntl, os, subprocess, sys, time
from pathlib import Path
from easel.declare.resources import Room
from easel.run.worker_config import WorkerConfig, describe
home = Path(sys.argv[1])
lock = os.open(home / "run" / "placed.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
fcntl.flock(lock, fcntl.LOCK_EX)
config = WorkerConfig(home, "slurm-1", Room(1.0, 256), str(home / "blobs"), parent=os.getpid())
words = [sys.executable, "-m", "easel.run.worker_main", describe(config)]
subprocess.Popen(words, start_new_session=True)
sys.stdin.read()
"""


def test_the_worker_of_a_killed_relay_removes_the_home_when_it_ends(tmp_path: Path) -> None:
    home = tmp_path / "slurm-1"
    (home / "run").mkdir(parents=True)
    with subprocess.Popen([sys.executable, "-c", RELAY, str(home)], stdin=subprocess.PIPE) as relay:
        until((home / "run" / "worker.sock").exists)
        relay.kill()
    until(lambda: not home.exists())
