"""The walls around a user's command: what bubblewrap is told. Pure, but for `probe`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# What programs need of /etc; shadow files, ssh keys and the rest stay outside.
_ETC = (
    "alternatives",
    "ca-certificates",
    "fonts",
    "group",
    "host.conf",
    "hosts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "passwd",
    "resolv.conf",
    "ssl",
    "timezone",
)
_SYSTEM = ("/usr", "/opt")
_ROOT_LINKS = ("bin", "sbin", "lib", "lib32", "lib64")
INSIDE = "/job"
STARTED_IN = Path.cwd()


@dataclass(frozen=True, slots=True)
class Walls:
    """What one job may see: its work folder (writable), its input (read-only), interpreters, devices."""

    work: Path
    tmp: Path
    input: Path | None
    interpreters: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    devices: tuple[Path, ...] = ()
    network: bool = False
    status_fd: int | None = None
    root: Path | None = None
    """The unpacked container image that stands for this machine's system."""


def wrap(bwrap: str, walls: Walls, argv: Sequence[str]) -> list[str]:
    """The command line that runs `argv` behind `walls`.

    The environment is the one that bubblewrap itself is started with: secrets must not stand in arguments.
    """
    args = [bwrap, "--unshare-all", "--cap-drop", "ALL", "--die-with-parent", "--new-session"]
    if walls.network:
        args.append("--share-net")
    args += _this_system() if walls.root is None else ["--ro-bind", str(walls.root), "/"]
    args += ["--proc", "/proc", "--dev", "/dev"]
    # Before the interpreters: one that lives under /tmp must show through.
    args += ["--bind", str(walls.tmp), "/tmp"]  # noqa: S108
    for path in walls.interpreters:
        args += ["--ro-bind-try", str(path), str(path)]
    for path in walls.hidden:
        if any(path.is_relative_to(shown) for shown in (*walls.interpreters, *map(Path, _SYSTEM))):
            args += ["--tmpfs", str(path)]
    for path in walls.devices:
        args += ["--dev-bind-try", str(path), str(path)]
    args += ["--bind", str(walls.work), INSIDE]
    if walls.input is not None:
        args += ["--ro-bind", str(walls.input), f"{INSIDE}/input"]
    args += ["--chdir", INSIDE]
    if walls.status_fd is not None:
        args += ["--json-status-fd", str(walls.status_fd)]
    return [*args, "--", *argv]


def _this_system() -> list[str]:
    """Programs and libraries of this machine, and what they need of /etc."""
    args: list[str] = []
    for name in _SYSTEM:
        args += ["--ro-bind-try", name, name]
    for name in _ROOT_LINKS:
        link = Path("/") / name
        if link.is_symlink():
            args += ["--symlink", str(link.readlink()), str(link)]
        elif link.is_dir():
            args += ["--ro-bind", str(link), str(link)]
    for name in _ETC:
        args += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return args


def _packages() -> set[Path]:
    """Folders of packages beside the interpreter's own: PYTHONPATH, and what is installed from a checkout.

    `python -m` also looks where it was started, which may be somebody's home with their keys: that is not for jobs.
    """
    named = {Path(entry).absolute() for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry}
    found = {Path(entry).absolute() for entry in sys.path if entry and Path(entry).is_dir()}
    return {folder for folder in found if folder != STARTED_IN or folder in named}


def interpreters(python: str | None) -> tuple[tuple[Path, ...], Path]:
    """The folders that an interpreter needs, and the folder of programs to put first on PATH.

    `python` is an interpreter or a virtual environment; None means the one that runs Easel.
    """
    if python is None:
        prefixes = {Path(sys.prefix), Path(sys.base_prefix)} | _packages()
        return tuple(sorted(prefixes)), Path(sys.prefix) / "bin"
    given = Path(python)
    bin_folder = given / "bin" if (given / "bin").is_dir() else given.parent
    prefix = bin_folder.parent
    folders = {prefix}
    settings = prefix / "pyvenv.cfg"
    if settings.is_file():
        for line in settings.read_text().splitlines():
            key, _, value = line.partition("=")
            if key.strip() == "home":
                folders.add(Path(value.strip()).parent)
    return tuple(sorted(folders)), bin_folder


def probe() -> str | None:
    """The bubblewrap that works on this machine, or None: it may be absent, or the kernel may forbid it."""
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return None
    trial = [bwrap, "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--", "true"]
    try:
        answer = subprocess.run(trial, capture_output=True, timeout=20, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    return bwrap if answer.returncode == 0 else None


WARNING = (
    "bubblewrap does not work here: commands of users run WITHOUT a sandbox, with the rights of this worker. "
    "Install it (apt install bubblewrap) and allow user namespaces, or let in only people whom you trust."
)
