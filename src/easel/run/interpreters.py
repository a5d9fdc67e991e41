"""Which interpreter a job may name, and the folders of this machine that it needs to run."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from easel.errors import InvalidInput

STARTED_IN = Path.cwd()
_SYSTEM_PREFIXES = (Path("/usr"), Path("/usr/local"))


class ForbiddenInterpreter(InvalidInput):
    """The job names an interpreter that is not on the admin's list."""

    kind = "forbidden-interpreter"


def interpreters(python: str | None, allowed: Sequence[Path] = ()) -> tuple[tuple[Path, ...], Path]:
    """Returns the folders that an interpreter needs, and the folder of programs to put first on PATH.

    `python` is an interpreter or a virtual environment of the `allowed` ones; None means the one that runs Easel.
    Paths are compared after links and `..` are resolved, so that there is one spelling for each.
    """
    if python is None:
        prefixes = {Path(sys.prefix), Path(sys.base_prefix)} | _packages()
        return tuple(sorted(prefixes)), Path(sys.prefix) / "bin"
    prefix = _prefix(Path(python))
    own = {_real(Path(sys.prefix)), _real(Path(sys.base_prefix)), *_SYSTEM_PREFIXES}
    if prefix not in own | {_prefix(each) for each in allowed}:
        raise ForbiddenInterpreter(
            f"environment.python names {python!r}, which is not among the interpreters of this device: "
            "leave it out, or ask an admin to add it to the setting `interpreters`"
        )
    folders = {prefix}
    settings = prefix / "pyvenv.cfg"
    if settings.is_file():
        for line in settings.read_text().splitlines():
            key, _, value = line.partition("=")
            if key.strip() == "home":
                folders.add(Path(value.strip()).parent)
    return tuple(sorted(folders)), prefix / "bin"


def _prefix(given: Path) -> Path:
    """The folder of an environment: of itself, or of the program `bin/python` in it, which is often a link."""
    try:
        is_folder = (given / "bin").is_dir()
    except (OSError, ValueError):  # where we may not look, nobody may
        is_folder = False
    return _real(given) if is_folder else _real(given.parent).parent


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # links in a circle, a name that no disk can hold
        raise ForbiddenInterpreter(f"environment.python {str(path)[:200]!r} is no path here") from error


def _packages() -> set[Path]:
    """Folders of packages beside the interpreter's own: PYTHONPATH, and what is installed from a checkout.

    `python -m` also looks where it was started, which may be somebody's home with their keys: that is not for jobs.
    """
    named = {Path(entry).absolute() for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry}
    found = {Path(entry).absolute() for entry in sys.path if entry and Path(entry).is_dir()}
    return {folder for folder in found if folder != STARTED_IN or folder in named}
