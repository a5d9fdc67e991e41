"""What a fresh process does to itself before it becomes user code: limits, and (as root) another user."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from easel.run.tree import die_with

MB = 1 << 20
_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNS = 0x00020000
_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 4096, 16384, 1 << 18
_PR_SET_NO_NEW_PRIVS = 38
_STAGE = Path("/run/easel-stage")
_FIRST_USER, _USERS = 61184, 4336
"""User numbers that systems keep for programs without a name: each attempt gets one, almost always its own."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one program may use, whatever it does. None: not limited here."""

    processes: int | None = None
    open_files: int = 65_536
    file_bytes: int = 20 * 1024 * MB
    data_bytes: int | None = None
    cores: tuple[int, ...] = ()


@dataclass(slots=True)
class Staging:
    """Folders that bubblewrap, started as another user, must reach although the way to them is private.

    They are bound under one folder that only the new process sees.
    """

    sources: list[Path] = field(default_factory=list)

    def place(self, path: Path) -> str:
        if path not in self.sources:
            self.sources.append(path)
        return str(_STAGE / str(self.sources.index(path)))

    def mount(self) -> None:
        """Mounts in the new process, as root."""
        _STAGE.mkdir(mode=0o755, parents=True, exist_ok=True)
        _call(_LIBC.unshare, _CLONE_NEWNS)
        _mount(None, Path("/"), None, _MS_REC | _MS_PRIVATE)
        _mount(b"tmpfs", _STAGE, b"tmpfs", _MS_NOSUID | _MS_NODEV, b"mode=755")
        for number, source in enumerate(self.sources):
            target = _STAGE / str(number)
            target.mkdir()
            _mount(bytes(source), target, None, _MS_BIND | _MS_REC)


def job_user(key: str) -> int | None:
    """The user number under which a program runs when we are root: never root's own."""
    return _FIRST_USER + zlib.crc32(key.encode()) % _USERS if os.geteuid() == 0 else None


def own_by(user: int, *folders: Path) -> None:
    """Give folders and what is in them to a user. Links themselves, never what they lead to."""
    for folder in folders:
        os.chown(folder, user, user, follow_symlinks=False)
        for root, names, files in os.walk(folder):
            for name in (*names, *files):
                path = os.path.join(root, name)  # noqa: PTH118 - many files
                if os.lstat(path).st_nlink > 1 and name in files:
                    continue  # a hard link to what others share: it stays theirs
                os.chown(path, user, user, follow_symlinks=False)


def confine(
    parent: int, enter: Callable[[], None], limits: Limits, staging: Staging | None, user: int | None
) -> None:
    """Sets limits that need no cooperation; called in the child, before the program.

    Until it is in its control group and carries its mark, nobody could find it: it must not outlive its parent.
    """
    try:
        die_with(parent)
        enter()
        _limit(limits)
        if staging is not None:
            staging.mount()
        if user is not None:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            die_with(parent)  # changing the user undid it
        _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        os.umask(0o022)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
    except OSError as error:
        os.write(2, f"the walls could not be put up: {error}\n".encode())
        os._exit(1)


def _limit(limits: Limits) -> None:
    if limits.cores:
        os.sched_setaffinity(0, limits.cores)
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_NPROC: limits.processes,
        resource.RLIMIT_DATA: limits.data_bytes,
    }
    for kind, value in wanted.items():
        if value is not None:
            _, most = resource.getrlimit(kind)
            value = value if most == resource.RLIM_INFINITY else min(value, most)
            resource.setrlimit(kind, (value, value))


def _mount(
    source: bytes | None, target: Path, kind: bytes | None, flags: int, data: bytes | None = None
) -> None:
    _call(_LIBC.mount, source, bytes(target), kind, ctypes.c_ulong(flags), data)


def _call(function: Callable[..., int], *arguments: object) -> None:
    if function(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{os.strerror(number)} ({function.__name__})")
