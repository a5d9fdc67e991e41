"""Ending a whole process tree, also those who forked twice to get away."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterable
from pathlib import Path

import psutil

_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)
_KERNEL_LISTS_CHILDREN = Path("/proc/self/task", str(os.getpid()), "children").exists()
MARK = "EASEL_ATTEMPT"
"""The variable that marks every process of an attempt, so that it can be found when all else is lost."""


def become_subreaper() -> None:
    """Orphans among our descendants become our children instead of init's."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with(parent: int, number: int = signal.SIGKILL) -> None:
    """Asks in a fresh child for the signal when `parent` ends; ends itself where that has happened already."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(128 + number)


def descendants(pid: int) -> list[int]:
    """Children, their children, and so on; from the kernel's own lists where it keeps them."""
    if not _KERNEL_LISTS_CHILDREN:
        try:
            return [child.pid for child in psutil.Process(pid).children(recursive=True)]
        except psutil.NoSuchProcess:
            return []
    found: list[int] = []
    ask = [pid]
    while ask:
        children = _children(ask.pop())
        found += children
        ask += children
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_bytes().split())
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found


def signal_all(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def kill_descendants(pid: int) -> bool:
    """One round of SIGKILL below `pid`; True when nobody was left. Repeat until then: forks race with us."""
    left = [child for child in descendants(pid) if _is_running(child)]
    signal_all(left, signal.SIGKILL)
    return not left


def reap() -> list[tuple[int, int]]:
    """(pid, status) of every child that ended."""
    ended: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended.append((pid, status))


def marked(key: str | None = None) -> list[int]:
    """Processes whose environment carries the mark (of this attempt). Slow: for cleaning up after a crash."""
    wanted = f"{MARK}={key}\0" if key else f"{MARK}="
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            environment = (folder / "environ").read_bytes()
        except OSError:
            continue
        if (b"\0" + environment).find(b"\0" + wanted.encode()) >= 0:
            found.append(int(folder.name))
    return found


def _is_running(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
