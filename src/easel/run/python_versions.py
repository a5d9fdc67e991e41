"""Which Python of this machine a job gets that asks for a version: `--python 3.12`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from easel.errors import InvalidInput

_VERSION = re.compile(r"[0-9]+\.[0-9]+(\.[0-9]+)?")
_PROGRAM = re.compile(r"python[0-9]+\.[0-9]+")
_SYSTEM = (Path("/usr/local"), Path("/usr"))
_PLACES = ("/usr/local/bin", "/usr/bin")
_ASK = "import platform, sys; print(platform.python_version(), sys.base_prefix, sep='\\n')"
_PATIENCE_S = 20.0


class NoPython(InvalidInput):
    """This machine has no Python of that version."""

    kind = "no-python"


@dataclass(frozen=True, slots=True)
class Python:
    """An interpreter, and the folder that it and its library lie in."""

    program: Path
    version: str
    base: Path

    def has(self, asked: str) -> bool:
        """Whether it is of the version that is asked for, `3.12` or `3.12.1`."""
        return f"{self.version}.".startswith(f"{asked}.")


def is_version(python: str | None) -> bool:
    """Whether a job asks for a version rather than for an interpreter by its path."""
    return python is not None and _VERSION.fullmatch(python) is not None


def own_python() -> Python:
    """Returns the one that runs Easel."""
    version = ".".join(map(str, sys.version_info[:3]))
    return Python(Path(sys.executable), version, Path(sys.base_prefix))


def find_python(asked: str, allowed: Sequence[Path] = ()) -> Python:
    """Returns a Python of that version: the one that runs Easel, else an admin's, the system's or one of uv's.

    `allowed` are the interpreters and environments that an admin listed. Others on the machine are somebody's own.
    """
    own = own_python()
    if own.has(asked):
        return own
    known = [own]
    for program in _programs(asked, allowed):
        found = _look(program)
        if found is not None and found.has(asked):
            return found
        known += [found] if found else []
    there = ", ".join(sorted({each.version for each in known}))
    raise NoPython(
        f"this device has no Python {asked}, only {there}: ask for one of these, run in an image, or ask an admin to "
        f"run `uv python install {asked}` there or to add one to the setting `interpreters`"
    )


def _programs(asked: str, allowed: Sequence[Path]) -> Iterator[Path]:
    for each in allowed:
        folder = each / "bin" if (each / "bin").is_dir() else each.parent
        yield from _in(folder)
    for prefix in _SYSTEM:
        yield from _in(prefix / "bin")
    uv = find_uv()
    if uv is not None:
        command = [uv, "python", "find", "--managed-python", "--no-python-downloads", "--no-project", asked]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")  # noqa: S603
        if done.returncode == 0:
            yield Path(done.stdout.strip())


def _in(folder: Path) -> list[Path]:
    try:
        return sorted(each for each in folder.iterdir() if _PROGRAM.fullmatch(each.name))
    except OSError:  # where we may not look, nobody may
        return []


def _look(program: Path) -> Python | None:
    """Returns what an interpreter says of itself; None where it does not start."""
    try:
        done = subprocess.run(  # noqa: S603 - an admin's or the system's
            [str(program), "-I", "-c", _ASK], capture_output=True, text=True, timeout=_PATIENCE_S, check=True
        )
        version, base = done.stdout.splitlines()
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return Python(program, version, Path(base))


def find_uv() -> str | None:
    """Returns uv where it is among the machine's own programs."""
    return shutil.which("uv", path=os.pathsep.join([str(Path(sys.prefix) / "bin"), *_PLACES]))
