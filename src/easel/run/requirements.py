"""What a job needs, read from its folder: requirements files, `pyproject.toml`, `uv.lock`, `environment.yml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from easel.errors import InvalidInput
from easel.run.conda import NAMES, CondaFile, read_conda_file
from easel.run.untrusted_files import read_regular

_INCLUDE = re.compile(r"(?:-r|--requirement|-c|--constraint)[ =]\s*(\S+)")
_DEPTH = 5
_MOST_BYTES, _MOST_LINES = 10 << 20, 10_000
"""Of one file, and of all that it includes: user code wrote them, and they are read outside of its limits."""


@dataclass(frozen=True, slots=True)
class PackageList:
    """Requirement lines, and the versions that a lock file allows (constraints); both as pip reads them."""

    lines: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    lock: tuple[str, ...] = ()
    """What the same requirements were locked to before; these versions are installed, and no others."""

    def locked_to(self, lock: Sequence[str]) -> PackageList:
        return replace(self, lock=tuple(lock))

    def plus(self, *names: str) -> PackageList:
        """Adds these, unless they are asked for already."""
        asked = {re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0].lower() for line in self.lines}
        return replace(self, lines=(*self.lines, *(n for n in names if n not in asked)))


def read_requirements(folder: Path, name: str) -> PackageList | CondaFile:
    """What the file `name` of the code asks for; InvalidInput where it cannot be had by name alone."""
    path = _inside(folder, name)
    if path.name in NAMES:
        return read_conda_file(path)
    if path.name == "uv.lock":
        return PackageList(_project_lines(_inside(folder, "pyproject.toml")), _locked(path))
    if path.name == "pyproject.toml":
        return PackageList(_project_lines(path))
    lines: list[str] = []
    _add_lines(folder, path, lines, 0)
    return PackageList(tuple(lines))


def _inside(folder: Path, name: str) -> Path:
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise InvalidInput(f"the requirements {name!r} lie outside of the code")
    if not path.is_file():
        raise InvalidInput(f"the code has no file {name!r} to take the requirements from")
    return path


def _text(path: Path) -> str:
    data = read_regular(path, _MOST_BYTES)
    if data is None:
        raise InvalidInput(f"{path.name} is no file that can be read")
    return data.decode(errors="replace")


def _add_lines(folder: Path, path: Path, found: list[str], depth: int) -> None:
    """Adds the requirements of a file, and of the files that it includes, to those that were found."""
    if depth > _DEPTH:
        raise InvalidInput(f"{path.name} includes files that include each other")
    for raw in _text(path).replace("\\\n", " ").splitlines():
        line = re.sub(r"(^|\s)#.*$", "", raw).strip()
        if not line:
            continue
        include = _INCLUDE.match(line)
        if include:
            inner = _inside(folder, str(path.parent / include[1]))
            _add_lines(folder, inner, found, depth + 1)
        elif line.startswith("--hash") or not line.startswith("-"):
            found.append(_named(line, path.name))
        else:
            raise InvalidInput(
                f"{path.name} says {line.split()[0]}, which is the platform's to say: an admin sets the index, and "
                "your own code goes along without being installed"
            )
        if len(found) > _MOST_LINES:
            raise InvalidInput(f"{path.name} asks for more than {_MOST_LINES:,} packages")


def _named(line: str, file: str) -> str:
    if line.startswith((".", "/", "file:", "~")) or "@ file:" in line:
        raise InvalidInput(
            f"{file} names {line!r}, a folder here: your own code goes along without being installed; name packages"
        )
    return line


def _project_lines(path: Path) -> tuple[str, ...]:
    table = _toml(path).get("project")
    lines = table.get("dependencies", []) if isinstance(table, dict) else None
    if not isinstance(lines, list):
        raise InvalidInput(f"{path.name} has no [project] with a list of dependencies")
    return tuple(_named(str(line), path.name) for line in lines)


def _locked(path: Path) -> tuple[str, ...]:
    """`name==version` of every package of a lock that comes from an index."""
    try:
        return tuple(
            f"{package['name']}=={package['version']}"
            for package in _toml(path).get("package", [])
            if "version" in package and "registry" in package.get("source", {})
        )
    except (TypeError, KeyError, AttributeError) as error:
        raise InvalidInput(f"{path.name} is not a lock that uv wrote: {error}") from error


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_text(path))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidInput(f"{path.name} is not TOML: {error}") from error
