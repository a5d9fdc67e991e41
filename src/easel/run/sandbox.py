"""The walls around user code. Whatever is not the platform's own program is started by `start`, and only there:
commands of jobs, entry points, and whatever else runs what a user wrote or uploaded.

`wrap` says what bubblewrap is told and is pure; `start` acts.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

from easel.run import seccomp, tracking
from easel.run.confinement import Limits, Staging, confine, job_user, own_by
from easel.run.egress import Allowed, is_public, open_way

# What programs need of /etc; shadow files, ssh keys and the rest stay outside.
_ETC = (
    "alternatives",
    "ca-certificates",
    "fonts",
    "host.conf",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "ssl",
    "timezone",
)
_SYSTEM = (Path("/usr"),)
_LIBRARIES = ("cuda*", "nvidia*", "rocm*", "intel*")
"""What of /opt is the system's."""
_ROOT_LINKS = ("bin", "sbin", "lib", "lib32", "lib64")
_PRIVATE = ("blobs", "run", "cache", "secrets", "backups", "images")
"""Folders of the platform's home that nobody can mean when they list an interpreter."""
_READ_ONLY_PROC = ("sys", "irq", "bus", "fs", "sysrq-trigger", "acpi", "scsi", "asound")
_EMPTY_PROC = ("kcore", "keys", "key-users", "kallsyms", "kmsg", "timer_list", "sched_debug", "latency_stats")
INSIDE = "/job"
CHECKPOINT = "checkpoint"
USER = 1000
_FILES = {
    "/etc/passwd": f"job:x:{USER}:{USER}:job:/tmp:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
    "/etc/group": f"job:x:{USER}:\nnogroup:x:65534:\n",
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
}
_SHARED_MEMORY_MB = 64
_DYING_S = 1.0
"""How long a process whose sandbox is gone may take to end."""


@dataclass(frozen=True, slots=True)
class Walls:
    """What one program may see: its work folder (writable), its input (read-only), interpreters, devices.

    `hidden` are the platform's own folders: nothing of them shows, whichever folder around them is shown.
    `environments` are folders that the platform itself made for the program and shows read-only, wherever they lie.
    """

    work: Path
    tmp: Path
    input: Path | None
    interpreters: tuple[Path, ...] = ()
    environments: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    devices: tuple[Path, ...] = ()
    network: bool = False
    """Whether a port of its loopback leads to the proxy of `egress`, and so to public addresses."""
    tracking: str | None = None
    """The address of MLflow's API to which another port of its loopback leads."""
    host_network: bool = False
    """Whether it shares this machine's own network, loopback included. Only an admin can say so."""
    root: Path | None = None
    """The unpacked container image that stands for this machine's system."""
    shared_memory_mb: int = _SHARED_MEMORY_MB
    checkpoint: Path | None = None
    """A folder of the job's own that outlives its attempts."""
    building: Path | None = None
    """A folder that the program fills and that holds only at its own path, such as an environment of conda."""
    is_first: bool = False
    """Whether it is process 1 behind the walls: when it has ended, the kernel has ended all that it left running."""


@dataclass(frozen=True, slots=True)
class Descriptors:
    """Open files that bubblewrap reads from, or (`status`) writes to, by their numbers."""

    files: Mapping[str, int] = field(default_factory=dict)
    seccomp: int | None = None
    status: int | None = None
    info: int | None = None
    block: int | None = None
    """The program waits until something comes here."""


Place = Callable[[Path], str]


def wrap(
    bwrap: str,
    walls: Walls,
    argv: Sequence[str],
    given: Descriptors | None = None,
    place: Place = str,
) -> list[str]:
    """Returns the command line that runs `argv` behind `walls`. `place` tells where bubblewrap finds a folder.

    The environment is the one that bubblewrap itself is started with: secrets must not stand in arguments.
    """
    given = given or Descriptors()
    args = [
        bwrap,
        "--unshare-all",
        "--unshare-user",
        "--cap-drop",
        "ALL",
        "--die-with-parent",
        "--new-session",
    ]
    args += ["--uid", str(USER), "--gid", str(USER), "--hostname", "easel", "--disable-userns"]
    if walls.host_network:
        args.append("--share-net")
    if walls.is_first:
        args.append("--as-pid-1")
    args += _this_system(walls, given, place) if walls.root is None else ["--ro-bind", place(walls.root), "/"]
    args += ["--proc", "/proc", *_proc(), "--dev", "/dev"]
    args += ["--size", str(walls.shared_memory_mb << 20), "--perms", "1777", "--tmpfs", "/dev/shm"]  # noqa: S108
    for path in walls.devices:  # before /dev becomes read-only: each needs a place there
        args += ["--dev-bind-try", str(path), str(path)]
    args += ["--remount-ro", "/dev"]
    # Before the interpreters: one that lives under /tmp must show through.
    args += ["--bind", place(walls.tmp), "/tmp"]  # noqa: S108
    shown: list[Path] = []
    for path in sorted(
        walls.interpreters, key=lambda each: len(each.parts)
    ):  # a folder before what lies in it
        args += _shown(_mountable(path, shown), walls.hidden, place)
        shown.append(path)
    for path in walls.environments:
        args += ["--ro-bind", place(path), str(path)]
    if walls.building is not None:
        args += ["--bind", place(walls.building), str(walls.building)]
    args += ["--bind", place(walls.work), INSIDE]
    if walls.input is not None:
        args += ["--ro-bind", place(walls.input), f"{INSIDE}/input"]
    if walls.checkpoint is not None:
        args += ["--bind", place(walls.checkpoint), f"{INSIDE}/{CHECKPOINT}"]
    args += ["--chdir", INSIDE]
    if walls.root is None:
        args += ["--remount-ro", "/"]
    if given.seccomp is not None:
        args += ["--seccomp", str(given.seccomp)]
    if given.status is not None:
        args += ["--json-status-fd", str(given.status)]
    if given.info is not None and given.block is not None:
        args += ["--info-fd", str(given.info), "--block-fd", str(given.block)]
    return [*args, "--", *argv]


def _this_system(walls: Walls, given: Descriptors, place: Place) -> list[str]:
    """Programs and libraries of this machine, and what they need of /etc."""
    args: list[str] = []
    for path in (*_SYSTEM, *(each for name in _LIBRARIES for each in sorted(Path("/opt").glob(name)))):
        args += _shown(path, walls.hidden, place)
    for name in _ROOT_LINKS:
        link = Path("/") / name
        if link.is_symlink():
            args += ["--symlink", str(link.readlink()), str(link)]
        elif link.is_dir():
            args += ["--ro-bind", str(link), str(link)]
    for name in (*_ETC, *(["resolv.conf"] if walls.host_network else [])):
        args += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    for target, number in given.files.items():
        args += ["--ro-bind-data", str(number), target]
    return args


def _mountable(path: Path, shown: Sequence[Path]) -> Path:
    """The name under which a folder can be shown: nothing can be mounted on a link in a folder that is shown already,
    and the link leads to the real name.
    """
    target = Path(os.path.normpath(path))
    for folder in (Path(os.path.normpath(each)) for each in shown):
        inside = target.relative_to(folder) if target.is_relative_to(folder) else Path()
        if inside.parts and target.resolve() != folder.resolve() / inside:
            return target.resolve()
    return path


def _shown(path: Path, hidden: Sequence[Path], place: Place) -> list[str]:
    """Read-only, without what must stay hidden: under its real name, whatever this one is."""
    real = path.resolve()
    homes = [home.resolve() for home in hidden]
    if not real.is_dir() or any(_is_private(real, home) for home in homes):
        return []
    target = Path(os.path.normpath(path))
    args = ["--ro-bind", place(real), str(target)]
    for home in homes:
        if home.is_relative_to(real):
            args += ["--tmpfs", str(target / home.relative_to(real)), "--remount-ro"]
            args += [str(target / home.relative_to(real))]
    return args


def _is_private(real: Path, home: Path) -> bool:
    return real == home or any(real.is_relative_to(home / name) for name in _PRIVATE)


def _proc() -> list[str]:
    """Kernel settings cannot be written, whoever runs this; what tells of the machine's memory and keys is empty."""
    args: list[str] = []
    for name in _READ_ONLY_PROC:
        if Path("/proc", name).exists():
            args += ["--ro-bind", f"/proc/{name}", f"/proc/{name}"]
    for name in _EMPTY_PROC:
        if Path("/proc", name).exists():
            args += ["--ro-bind", "/dev/null", f"/proc/{name}"]
    return args


@dataclass(frozen=True, slots=True)
class UserProgram:
    """What to run: `key` names it among all that run here, `environment` is all of its environment."""

    key: str
    argv: Sequence[str]
    environment: Mapping[str, str]
    walls: Walls
    limits: Limits = field(default_factory=Limits)


def start(
    bwrap: str | None,
    program: UserProgram,
    *,
    status: int | None = None,
    stdout: int | IO[bytes] | None = subprocess.PIPE,
    stderr: int | IO[bytes] | None = subprocess.PIPE,
    enter: Callable[[], None] = lambda: None,
    allowed: Allowed = is_public,
) -> subprocess.Popen[bytes]:
    """Starts a program behind its walls and within its limits: the one way in which user code is started.

    `enter` is called in the new process first (to join a control group). `status` gets bubblewrap's status lines.
    `allowed` says which addresses a program with a network may be connected to.
    Without bubblewrap only the limits hold: callers must have asked whether an admin allows that.
    """
    walls = program.walls
    user = job_user(program.key) if bwrap is not None else None
    staging = Staging() if user is not None else None
    opened: list[int] = []
    gate: _Gate | None = None
    argv: Sequence[str] = program.argv
    if bwrap is not None:
        filter_ = seccomp.program()
        if filter_ is None:
            raise OSError("there is no filter of system calls for this processor")
        files = {target: _readable(text.encode()) for target, text in _FILES.items()}
        filter_fd = _readable(filter_)
        opened = [*files.values(), filter_fd]
        ways = walls.network or walls.tracking is not None
        gate = _Gate() if ways and not walls.host_network else None
        opened += [gate.info_write, gate.block_read] if gate else []
        numbers = opened[-2:] if gate else [None, None]
        given = Descriptors(files if walls.root is None else {}, filter_fd, status, *numbers)
        argv = wrap(bwrap, walls, argv, given, staging.place if staging else str)
    if user is not None:
        own_by(user, walls.work, walls.tmp, *(each for each in (walls.checkpoint, walls.building) if each))
    passed = [*opened, *([status] if bwrap is not None and status is not None else [])]
    try:
        process = subprocess.Popen(  # noqa: S603
            argv,
            cwd=walls.work if staging is None else "/",
            env=dict(program.environment),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            pass_fds=passed,
            start_new_session=True,
            preexec_fn=partial(confine, os.getpid(), enter, program.limits, staging, user),
        )
    finally:
        for number in opened:
            os.close(number)
    if gate is not None:
        gate.open(process, walls, allowed)
    return process


class _Gate:
    """Holds a program back until its network leads to where it may."""

    def __init__(self) -> None:
        self.info_read, self.info_write = os.pipe2(os.O_CLOEXEC)
        self.block_read, self.block_write = os.pipe2(os.O_CLOEXEC)

    def open(self, process: subprocess.Popen[bytes], walls: Walls, allowed: Allowed) -> None:
        """A bubblewrap that failed or was killed meanwhile is not asked for: its end says why."""
        with os.fdopen(self.info_read, "rb") as info, os.fdopen(self.block_write, "wb", buffering=0) as block:
            told = info.read()
            try:
                if told:
                    pid = int(json.loads(told)["child-pid"])
                    if walls.network:
                        open_way(pid, allowed)
                    if walls.tracking is not None:
                        _open_tracking(pid, walls.tracking)
                    block.write(b".")
            except (OSError, ValueError):
                if not _is_over(process):
                    raise


def _is_over(process: subprocess.Popen[bytes]) -> bool:
    """Whether the process has ended, or does so within a moment. Its status stays for whoever asks for it."""
    end = os.pidfd_open(process.pid)
    try:
        return bool(select.select([end], [], [], _DYING_S)[0])
    finally:
        os.close(end)


def _open_tracking(pid: int, address: str) -> None:
    """Most programs do not need it: one that does is told by its own connection that there is none."""
    try:
        tracking.open_way(pid, address)
    except OSError as error:
        sys.stderr.write(f"easel worker: MLflow inside a job will find no server: {error}\n")


def _readable(data: bytes) -> int:
    """A file in memory that holds `data`, at its beginning."""
    number = os.memfd_create("easel", os.MFD_CLOEXEC)
    os.write(number, data)
    os.lseek(number, 0, os.SEEK_SET)
    return number


def probe() -> str | None:
    """The bubblewrap that works on this machine, or None: it may be absent, or the kernel may forbid it."""
    bwrap = shutil.which("bwrap")
    if bwrap is None or seccomp.program() is None:
        return None
    with tempfile.TemporaryDirectory(prefix="easel-probe-") as name:
        folder = Path(name)
        for each in ("work", "tmp"):
            (folder / each).mkdir()
        walls = Walls(folder / "work", folder / "tmp", None)
        trial = UserProgram("probe", ["true"], {"PATH": "/usr/bin:/bin"}, walls)
        try:
            process = start(bwrap, trial, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            return bwrap if process.wait(20) == 0 else None
        except (OSError, subprocess.SubprocessError):
            return None


NO_SANDBOX = (
    "this device has no sandbox (bubblewrap is missing, or user namespaces are forbidden), so it runs no code of "
    'users: install bubblewrap, or let an admin set unsandboxed = "I understand"'
)
WARNING = (
    "commands of users run WITHOUT a sandbox, with the rights of this worker, because the settings say so "
    "(unsandboxed). Install bubblewrap (apt install bubblewrap), allow user namespaces and remove that setting, "
    "or let in only people whom you trust."
)
