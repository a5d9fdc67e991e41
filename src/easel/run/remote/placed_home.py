"""The home of a worker that an engine placed on some machine: nobody comes back to it, so it goes with its worker."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from easel.clock import Clock, SystemClock
from easel.run.entries import ProcessBorn
from easel.run.executors.local import worker_is_there
from easel.run.journal import alive, read
from easel.run.tree import reap

_LOCK = "placed.lock"
_COMES_UP_WITHIN_S = 600.0
_AGENTS_END_WITHIN_S = 2.0


@contextmanager
def placed_home(home: Path) -> Iterator[None]:
    """Holds the home while a worker lives in it and removes it afterwards, and before that what killed workers left."""
    run = home / "run"
    run.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(run / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        for other in home.parent.iterdir():
            if other != home and _is_abandoned(other):
                shutil.rmtree(other, ignore_errors=True)
        yield
    finally:
        if not worker_is_there(run) and not _has_agents(run):
            shutil.rmtree(home, ignore_errors=True)
        os.close(lock)


def remove_deserted(home: Path, clock: Clock) -> None:
    """Removes a placed worker's home whose relay was killed. Called by its worker, the last one there, when it ends."""
    with suppress(OSError):
        lock = os.open(home / "run" / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # else the relay lives, and removes it itself
            until = clock.monotonic() + _AGENTS_END_WITHIN_S
            while there := _has_agents(home / "run"):
                if clock.monotonic() > until:
                    break
                clock.sleep(0.02)
                reap()
            if not there:
                shutil.rmtree(home, ignore_errors=True)
        finally:
            os.close(lock)


def _is_abandoned(home: Path) -> bool:
    """Whether this is a placed worker's home of ours in which nobody lives any more."""
    with suppress(OSError):
        if home.is_symlink() or home.lstat().st_uid != os.geteuid():
            return False
        lock = os.open(home / "run" / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A home of which the lock was just made, and not yet taken, has no worker's lock.
            age_s = SystemClock().now().timestamp() - os.fstat(lock).st_mtime
            came_up = (home / "run" / "worker.lock").exists() or age_s > _COMES_UP_WITHIN_S
            return came_up and not worker_is_there(home / "run") and not _has_agents(home / "run")
        finally:
            os.close(lock)
    return False


def _has_agents(run: Path) -> bool:
    """Whether a process of an attempt is alive: it writes to the home until it is ended."""
    for journal in (run / "attempts").glob("*.journal"):
        entries, _ = read(journal, 0, 1 << 16)
        if any(isinstance(entry.body, ProcessBorn) and alive(entry.body) for entry in entries):
            return True
    return False
