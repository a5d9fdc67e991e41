"""Limits on CPU, memory and processes that a process tree cannot leave, where we may set them: control groups.

Version 2, version 1, and mixtures are known. Where we may not write there, `OpenCage` limits nothing
and the agent falls back to affinity, rlimits, thread variables and its own watch over memory.
"""

from __future__ import annotations

import fcntl
import os
import signal
from pathlib import Path
from typing import Protocol

from easel.clock import Clock
from easel.declare.resources import Resources

ROOT = Path("/sys/fs/cgroup")
_PERIOD_US = 100_000
_GONE_WITHIN_S = 2.0


class Cgroup(Protocol):
    """Holds one process tree."""

    hard: bool
    """Whether the kernel enforces the limits."""

    def limit(self, asked: Resources, processes: int) -> None:
        """Set the limits (again)."""

    def enter(self, pid: int = 0) -> None:
        """Put a process in; its children follow. 0 is the caller."""

    def members(self) -> list[int]:
        """The processes inside."""

    def kill(self) -> None:
        """SIGKILL to all inside, however they forked."""

    def out_of_memory(self) -> bool:
        """Whether the kernel killed something inside for want of memory since the cgroup was made."""

    def cpu_seconds(self) -> float:
        """CPU time used inside so far."""

    def remove(self) -> bool:
        """Take it away; False while a process is still inside."""


class OpenCage:
    """No control groups here."""

    hard = False

    def limit(self, asked: Resources, processes: int) -> None:
        pass

    def enter(self, pid: int = 0) -> None:
        pass

    def members(self) -> list[int]:
        return []

    def kill(self) -> None:
        pass

    def out_of_memory(self) -> bool:
        return False

    def cpu_seconds(self) -> float:
        return 0.0

    def remove(self) -> bool:
        return True


class GroupCage:
    """One control group in each hierarchy that matters, under one name."""

    hard = True

    def __init__(self, folders: dict[str, Path]) -> None:
        self._folders = folders
        for folder in folders.values():
            folder.mkdir(parents=True, exist_ok=True)

    def limit(self, asked: Resources, processes: int) -> None:
        bytes_, quota = asked.memory_mb << 20, int(asked.vcpu * _PERIOD_US)
        if unified := self._folders.get("unified"):
            _write(unified / "memory.max", bytes_)
            _write(unified / "memory.swap.max", 0)
            _write(unified / "memory.oom.group", 1)
            _write(unified / "cpu.max", f"{quota} {_PERIOD_US}")
            _write(unified / "pids.max", processes)
        if pids := self._folders.get("pids"):
            _write(pids / "pids.max", processes)
        if memory := self._folders.get("memory"):
            _write(memory / "memory.limit_in_bytes", bytes_)
        if cpu := self._folders.get("cpu"):
            _write(cpu / "cpu.cfs_period_us", _PERIOD_US)
            _write(cpu / "cpu.cfs_quota_us", quota)

    def enter(self, pid: int = 0) -> None:
        for folder in self._folders.values():
            _write(folder / "cgroup.procs", pid)

    def members(self) -> list[int]:
        pids: set[int] = set()
        for folder in self._folders.values():
            try:
                pids |= {int(pid) for pid in (folder / "cgroup.procs").read_text().split()}
            except OSError:
                continue
        return sorted(pids)

    def kill(self) -> None:
        if "unified" in self._folders and _write(self._folders["unified"] / "cgroup.kill", 1):
            return
        for pid in self.members():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def out_of_memory(self) -> bool:
        for key, name in (("unified", "memory.events"), ("memory", "memory.oom_control")):
            if key in self._folders and _field(self._folders[key] / name, "oom_kill") > 0:
                return True
        return False

    def cpu_seconds(self) -> float:
        if "cpuacct" in self._folders:
            return _number(self._folders["cpuacct"] / "cpuacct.usage") / 1e9
        if "unified" in self._folders:
            return _field(self._folders["unified"] / "cpu.stat", "usage_usec") / 1e6
        return 0.0

    def remove(self) -> bool:
        for folder in self._folders.values():
            try:
                folder.rmdir()
            except FileNotFoundError:
                continue
            except OSError:
                return False
        return True


class Cgroups:
    """Makes cgroups under a name of our own, so that leftovers of a crash can be found and ended.

    Whoever uses a name holds a lock on its folders, so that others can tell what nobody uses any more.
    """

    def __init__(self, name: str, root: Path = ROOT) -> None:
        self.parents = _parents(name, root)
        while not self._hold():
            self.parents = _parents(name, root)

    def _hold(self) -> bool:
        """Holds the folders; False where somebody who swept took one away before."""
        try:
            self._held = [_held(parent) for parent in self.parents.values()]
            return all(map(_same, self._held, self.parents.values()))
        except FileNotFoundError:
            return False
        except OSError:  # no locks here: what we have is swept only while nothing of ours runs
            return True

    def sweep(self) -> None:
        """Take away the empty cgroups of workers that were killed, and that nobody will start again by that name."""
        for folder in {parent.parent for parent in self.parents.values()}:
            for other in folder.glob("easel-*"):
                if other not in self.parents.values():
                    _sweep(other)

    @property
    def hard(self) -> bool:
        return bool(self.parents)

    def make(self, key: str) -> Cgroup:
        if not self.parents:
            return OpenCage()
        return GroupCage({kind: parent / key for kind, parent in self.parents.items()})

    def leftovers(self) -> list[str]:
        """Keys of the cgroups that exist."""
        keys: set[str] = set()
        for parent in self.parents.values():
            keys |= {child.name for child in parent.iterdir() if child.is_dir()}
        return sorted(keys)

    def _remove_each(self) -> list[str]:
        """The keys of those that could not be removed."""
        return [key for key in self.leftovers() if not self.make(key).remove()]

    def remove(self, clock: Clock) -> None:
        """Removes a cgroup with those under it; what was in them was killed, and takes a moment to go."""
        until = clock.monotonic() + _GONE_WITHIN_S
        while self._remove_each() and clock.monotonic() < until:
            clock.sleep(0.02)
        for parent in self.parents.values():
            try:
                parent.rmdir()
            except OSError:
                continue


def _held(folder: Path, how: int = fcntl.LOCK_SH) -> int:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, how)
    except OSError:
        os.close(fd)
        raise
    return fd


def _same(fd: int, folder: Path) -> bool:
    return os.path.samestat(os.fstat(fd), folder.stat())


def _sweep(folder: Path) -> None:
    """Removes the cgroup unless somebody holds it, or a process is in it."""
    try:
        fd = _held(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return
    try:
        for child in folder.iterdir():
            if child.is_dir():
                child.rmdir()
        folder.rmdir()
    except OSError:
        return
    finally:
        os.close(fd)


def _parents(name: str, root: Path) -> dict[str, Path]:
    """Where our groups go, one folder for each hierarchy; empty where we may not."""
    found: dict[str, Path] = {}
    try:
        if (root / "cgroup.controllers").exists():
            controllers = (root / "cgroup.controllers").read_text().split()
            if not {"memory", "cpu"} <= set(controllers):
                return {}
            parent = root / name
            parent.mkdir(exist_ok=True)
            for folder in (root, parent):
                if not _write(folder / "cgroup.subtree_control", "+cpu +memory"):
                    return {}
                _write(folder / "cgroup.subtree_control", "+pids")
            return {"unified": parent}
        for kind in ("memory", "cpu", "cpuacct", "pids", "unified"):
            if (root / kind).is_dir() and (
                kind != "unified" or (root / "unified" / "cgroup.controllers").exists()
            ):
                parent = root / kind / name
                parent.mkdir(exist_ok=True)
                found[kind] = parent
    except OSError:
        return {}
    return found if {"memory", "cpu"} <= set(found) else {}


def _write(path: Path, value: object) -> bool:
    try:
        # Not Path.write_text: it truncates, which some of these files refuse.
        fd = os.open(path, os.O_WRONLY)
        try:
            os.write(fd, str(value).encode())
        finally:
            os.close(fd)
    except OSError:
        return False
    return True


def _number(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0


def _field(path: Path, name: str) -> int:
    try:
        text = path.read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.split()[:1] == [name]), 0)
