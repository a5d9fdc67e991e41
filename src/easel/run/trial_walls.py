"""The walls around a trial: a child of a warm process that sees the system, its own folders and nothing else.

Starting it behind bubblewrap, as commands are, would cost the imports that the warm process has paid already.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import resource
import shutil
import signal
import struct
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from easel.run import kernels, landlock, seccomp
from easel.run.launch import Folders
from easel.run.tree import die_with

_LIBC = ctypes.CDLL(None, use_errno=True)
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER, _DROP_BOUNDING = 38, 22, 2, 24
_CAPABILITIES_3 = 0x20080522
_ETC = (
    "ssl",
    "ca-certificates",
    "fonts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "timezone",
)
_ETC_NAMES = ("passwd", "group", "nsswitch.conf", "hosts", "mime.types", "alternatives", "os-release")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/proc", "/sys")
_LIBRARIES = ("cuda*", "nvidia*", "rocm*", "intel*")
_DEVICES = ("null", "zero", "full", "random", "urandom", "dri", "kfd", "nvidia*", "nvidia-caps")
_OWN_THREADS = Path("/proc/self/task")
"""CUDA names its threads by files in here, and finds no GPU where it cannot. Only those of its own process are open."""
_LEARNERS = ("catboost", "lightgbm", "onnx", "onnxruntime", "sklearn", "torch", "torchvision", "xgboost")
_KNOWN = frozenset((*_LEARNERS, "numpy", "pandas", "PIL", "scipy"))
LONGEST = 64 * 2**20
"""Bytes of a result that a trial may tell."""
NO_WALLS = (
    "this machine cannot wall in trials and models of apps, so none run here: its kernel has no Landlock (5.19 or "
    "newer, with it among the security modules), or there is no filter of system calls for its processor. Use "
    'another kernel, or let an admin set unsandboxed = "I understand"'
)


def can_wall_in() -> bool:
    """Whether this kernel and processor can wall in a process that was forked, not started."""
    return landlock.available() and seccomp.program(internet=False) is not None


def rules(folders: Folders, checkpoint: Path, home: Path) -> Iterator[tuple[Path, int]]:
    """What a trial of the platform may read, and where it may write."""
    yield from ((path, landlock.WRITE) for path in (folders.root, checkpoint))
    yield folders.log, landlock.WRITE
    yield from system_rules(home)


def system_rules(home: Path) -> Iterator[tuple[Path, int]]:
    """What every process behind these walls may use: the system's libraries, Python, devices; nothing of `home`."""
    yield Path("/dev/shm"), landlock.WRITE  # noqa: S108
    for name in _DEVICES:
        yield from ((path, landlock.DEVICE | landlock.READ) for path in Path("/dev").glob(name))
    here = str(Path("/proc/self/cwd").readlink())  # `python -m` puts it on the path, and it may be anything
    python = [sys.prefix, sys.base_prefix, *(each for each in sys.path if each not in ("", here))]
    libraries = [path for name in _LIBRARIES for path in Path("/opt").glob(name)]
    etc = [Path("/etc", name) for name in (*_ETC, *_ETC_NAMES)]
    shown = [*map(Path, _SYSTEM), *map(Path, python), *libraries, *etc, Path(__file__).parents[1]]
    for path in dict.fromkeys(shown):
        if path.exists():
            yield from ((each, landlock.READ) for each in landlock.without(path, home))


Tell = Callable[[dict[str, Any]], None]


def apart(work: Callable[[Tell], None], put_up: Callable[[], None], hear: Tell) -> bool:
    """Runs `work` in a child of this process, behind the walls that `put_up` puts up; whether it came to its end.

    What it tells is heard here at once.
    """
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            die_with(parent)
            os.close(read_end)
            put_up()
            with os.fdopen(write_end, "wb") as pipe:

                def tell(found: dict[str, Any]) -> None:
                    pipe.write(json.dumps(found).encode() + b"\n")
                    pipe.flush()

                work(tell)
            code = 0
        finally:
            os._exit(code)
    os.close(write_end)
    fits = True
    with os.fdopen(read_end, "rb") as answer:
        while line := answer.readline(LONGEST + 1):
            fits = len(line) <= LONGEST
            if not fits:
                os.kill(pid, signal.SIGKILL)
                break
            if line.endswith(b"\n"):  # the last words of one that died are not whole
                hear(json.loads(line))
    _, status = os.waitpid(pid, 0)
    return fits and status == 0


def learn_imports(names: Iterable[str]) -> None:
    """Import what a trial imported, so that the next child of this process has it. Only libraries that we know."""
    for name in names:
        root, *rest = name.split(".")
        if root in _KNOWN and "__main__" not in rest and name not in sys.modules:
            with suppress(Exception):  # many names are made up by their packages
                importlib.import_module(name)


def put_up(places: Sequence[tuple[Folders, Path]], home: Path) -> None:
    """Walls the child in: no privileges, no internet, no files of others, whatever its code turns into. Its own are
    those of its trials, each with the checkpoint's folder."""
    tmp = places[0][0].tmp
    tmp.mkdir(parents=True, exist_ok=True)
    os.environ["TMPDIR"] = str(tmp)
    # Kernels are built where this trial alone may write: a folder for all would let one of them plant code for others.
    kernels.lend(home, tmp / "triton", os.environ)
    tempfile.tempdir = None
    allowed = [rule for folders, checkpoint in places for rule in rules(folders, checkpoint, home)]
    wall_in([*allowed, (kernels.folder(home), landlock.READ)])
    _forget_hidden_compiler()


def _forget_hidden_compiler() -> None:
    """Kernels are built by the compiler that CC names, or by the system's where that one lies behind the walls."""
    named = shutil.which(os.environ.get("CC", ""))
    try:
        if named is not None:
            Path(named).open("rb").close()
    except OSError:
        del os.environ["CC"]


def wall_in(allowed: Iterable[tuple[Path, int]]) -> None:
    """Put the walls up around this process: what is not `allowed` cannot be read or written from now on."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _checked(_LIBC.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    if landlock.available():
        # Open from now on: the rule is about what is open, which the kernel may otherwise forget and make anew.
        os.open(_OWN_THREADS, os.O_PATH | os.O_CLOEXEC)
        landlock.restrict([*allowed, (_OWN_THREADS, landlock.SETTINGS)])
    _drop_capabilities()
    filter_ = seccomp.program(internet=False)
    if filter_ is not None:
        code = ctypes.create_string_buffer(filter_, len(filter_))
        described = struct.pack("@HxxxxxxQ", len(filter_) // 8, ctypes.addressof(code))
        _checked(_LIBC.prctl(_SECCOMP, _FILTER, described, 0, 0))


def _drop_capabilities() -> None:
    for number in range(64):
        _LIBC.prctl(_DROP_BOUNDING, number, 0, 0, 0)
    header, nothing = struct.pack("=Ii", _CAPABILITIES_3, 0), bytes(24)
    _checked(_LIBC.capset(header, nothing))


def _checked(answer: int) -> None:
    if answer != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
