"""Tries every known way out of the sandbox on this machine, and says which are closed.

`easel doctor --sandbox` and `tests/sandbox` run it. The host lays out bait (a home with a secret, an open port, a
process, shared memory); the programs of `escape_scripts` try to get at it from behind the walls.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pwd
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from easel.errors import EaselError
from easel.run.confinement import Limits
from easel.run.depot import outputs
from easel.run.images import check_name
from easel.run.interpreters import interpreters
from easel.run.sample import tasks_of
from easel.run.sandbox import UserProgram, Walls, start
from easel.testing.escape_scripts import PREAMBLE, WAYS

_PROCESSES, _OPEN_FILES, _FILE_BYTES, _SHARED_MB = 200, 256, 1 << 20, 4
_PATIENCE_S = 120


@dataclass(frozen=True, slots=True)
class Way:
    """One way out. `said` is what happened: why it is closed, or how it was open."""

    name: str
    closed: bool
    said: str


def try_all(bwrap: str) -> list[Way]:
    """Every way, tried on this machine with the real walls."""
    with tempfile.TemporaryDirectory(prefix="easel-escapes-") as name, lay_bait(Path(name)) as bait:
        return [*_from_inside(bwrap, Path(name), bait), *_from_outside(Path(name), bait)]


@contextlib.contextmanager
def lay_bait(folder: Path) -> Iterator[dict[str, Any]]:
    secret = secrets.token_hex(16)
    interpreter = folder / "interpreter"
    home = interpreter / "easel-home"  # the hardest place to hide it
    for each in (home / "run" / "attempts" / "other" / "work", home / "secrets", folder / "jobs"):
        each.mkdir(parents=True)
    for file in ("signing.key", "secrets/token", "run/attempts/other/work/secret"):
        (home / file).write_text(secret)
    for name in ("work", "tmp", "input"):
        (folder / "jobs" / name).mkdir()
    shared = Path("/dev/shm", f"easel-{secret}")  # noqa: S108
    key = int(secret[:7], 16)
    libc = ctypes.CDLL(None)
    segment = libc.shmget(key, 4096, 0o1600)
    bystander = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    with socket.socket() as port, socket.socket(socket.AF_UNIX) as unnamed:
        try:
            port.bind(("0.0.0.0", 0))  # noqa: S104 - bait: nothing answers there
            port.listen()
            unnamed.bind(f"\0{secret}")
            unnamed.listen()
            with contextlib.suppress(OSError):
                shared.write_text(secret)
            own = (each.address for many in psutil.net_if_addrs().values() for each in many)
            yield {
                "secret": secret,
                "home": str(home),
                "interpreter": str(interpreter),
                "temporary": str(folder / "jobs"),
                "shared": shared.name,
                "shm_key": key,
                "pid": bystander.pid,
                "users": [each.pw_name for each in pwd.getpwall() if each.pw_name != "nobody"],
                "port": port.getsockname()[1],
                "addresses": [each for each in own if each.count(".") == 3 and not each.startswith("127.")],
                "abstract": secret,
                "processes": _PROCESSES,
                "open_files": _OPEN_FILES,
                "file_bytes": _FILE_BYTES,
                "shared_mb": _SHARED_MB,
            }
        finally:
            bystander.kill()
            bystander.wait()
            shared.unlink(missing_ok=True)
            if segment >= 0:
                libc.shmctl(segment, 0, None)


def _from_inside(bwrap: str, folder: Path, bait: dict[str, Any]) -> list[Way]:
    shown, programs = interpreters(None)
    jobs = folder / "jobs"
    walls = Walls(
        work=jobs / "work",
        tmp=jobs / "tmp",
        input=jobs / "input",
        interpreters=(*shown, Path(bait["interpreter"])),
        hidden=(Path(bait["home"]),),
        shared_memory_mb=_SHARED_MB,
    )
    laid_out(folder, {**bait, "shown": [str(path) for path in shown]})
    (walls.work / "escape.py").write_text(script_of(WAYS))
    limits = Limits(
        processes=_PROCESSES + (0 if os.geteuid() == 0 else tasks_of(os.getuid())),
        open_files=_OPEN_FILES,
        file_bytes=_FILE_BYTES,
    )
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "LANG": "C.UTF-8"}
    program = UserProgram("escapes", [sys.executable, "-B", "escape.py"], environment, walls, limits)
    process = start(bwrap, program)
    try:
        said, complaint = process.communicate(timeout=_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        said, complaint = process.communicate()
    found = {each["name"]: each for each in map(json.loads, said.splitlines())}
    silent = f"nothing was said of it: {complaint.decode(errors='replace').strip()[-300:]}"
    return [
        Way(name, found[name]["code"] == 0, found[name]["said"])
        if name in found
        else Way(name, False, silent)
        for name in WAYS
    ]


def script_of(names: Iterable[str]) -> str:
    """One program that tries these ways, each in a process of its own."""
    tries = "".join(f"name = {name!r}\nrun({WAYS[name]!r})\n" for name in names)
    return f"{PREAMBLE}\nbait = json.load(open('/job/bait.json'))\n{tries}"


def laid_out(folder: Path, bait: dict[str, Any]) -> Path:
    """The work folder, with a description of the bait in it."""
    work = folder / "jobs" / "work"
    (work / "bait.json").write_text(json.dumps(bait))
    return work


def _from_outside(folder: Path, bait: dict[str, Any]) -> list[Way]:
    """What a job may ask for in words, and leave behind."""
    home = bait["home"]
    link = folder / "link"
    link.symlink_to(home)
    asked = {
        "an interpreter in the home": f"{home}/x/y",
        "an interpreter through ..": f"/usr/..{home}/x/y",
        "an interpreter with doubled slashes": f"/{home}//run/x/y",
        "an interpreter through a link": f"{link}/x/y",
        "an interpreter in /etc": "/etc/x/y",
        "an interpreter in root's folder": "/root/x/y",
    }
    ways = [_refused(name, lambda path=path: interpreters(path)) for name, path in asked.items()]  # type: ignore[misc]
    images = {"a folder as an image": "dir:/etc", "an archive as an image": "oci-archive:/root/x.tar"}
    ways += [_refused(name, lambda image=image: check_name(image)) for name, image in images.items()]  # type: ignore[misc]
    left = folder / "left"
    left.mkdir()
    (left / "link").symlink_to(f"{home}/signing.key")
    (left / "folder").symlink_to(home)
    os.mkfifo(left / "pipe")
    kept = [name for name, _ in outputs(left)]
    return [*ways, Way("links and pipes in the output", not kept, ", ".join(kept))]


def _refused(name: str, ask: Callable[[], object]) -> Way:
    try:
        ask()
    except EaselError as error:
        return Way(name, True, error.message)
    return Way(name, False, "it was accepted")
