"""What a job needs, read from its folder: requirements files, `pyproject.toml`, `uv.lock`, `environment.yml`."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from easel.errors import InvalidInput
from easel.run.conda import NAMES, CondaFile, read_conda_file

_INCLUDE = re.compile(r"(?:-r|--requirement|-c|--constraint)[ =]\s*(\S+)")
_DEPTH = 5


@dataclass(frozen=True, slots=True)
class PackageList:
    """Requirement lines, and the versions that a lock file allows (constraints); both as pip reads them."""

    lines: tuple[str, ...]
    constraints: tuple[str, ...] = ()

    @property
    def is_locked(self) -> bool:
        return bool(self.constraints) or all("==" in line for line in self.lines)

    def plus(self, *names: str) -> PackageList:
        """Adds these, unless they are asked for already."""
        asked = {re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0].lower() for line in self.lines}
        return PackageList((*self.lines, *(n for n in names if n not in asked)), self.constraints)


def read_requirements(folder: Path, name: str) -> PackageList | CondaFile:
    """What the file `name` of the code asks for; InvalidInput where it cannot be had by name alone."""
    path = _inside(folder, name)
    if path.name in NAMES:
        return read_conda_file(path)
    if path.name == "uv.lock":
        return PackageList(_project_lines(_inside(folder, "pyproject.toml")), _locked(path))
    if path.name == "pyproject.toml":
        return PackageList(_project_lines(path))
    return PackageList(_lines(folder, path, 0))


def _inside(folder: Path, name: str) -> Path:
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise InvalidInput(f"the requirements {name!r} lie outside of the code")
    if not path.is_file():
        raise InvalidInput(f"the code has no file {name!r} to take the requirements from")
    return path


def _lines(folder: Path, path: Path, depth: int) -> tuple[str, ...]:
    if depth > _DEPTH:
        raise InvalidInput(f"{path.name} includes files that include each other")
    found: list[str] = []
    for raw in path.read_text(encoding="utf-8", errors="replace").replace("\\\n", " ").splitlines():
        line = re.sub(r"(^|\s)#.*$", "", raw).strip()
        if not line:
            continue
        include = _INCLUDE.match(line)
        if include:
            inner = _inside(folder, str(path.parent / include[1]))
            found += _lines(folder, inner, depth + 1)
        elif line.startswith("--hash") or not line.startswith("-"):
            found.append(_named(line, path.name))
        else:
            raise InvalidInput(
                f"{path.name} says {line.split()[0]}, which is the platform's to say: an admin sets the index, and "
                "your own code goes along without being installed"
            )
    return tuple(found)


def _named(line: str, file: str) -> str:
    if line.startswith((".", "/", "file:", "~")) or "@ file:" in line:
        raise InvalidInput(
            f"{file} names {line!r}, a folder here: your own code goes along without being installed; name packages"
        )
    return line


def _project_lines(path: Path) -> tuple[str, ...]:
    table = _toml(path).get("project")
    if not isinstance(table, dict):
        raise InvalidInput(f"{path.name} has no [project] with dependencies")
    return tuple(_named(str(line), path.name) for line in table.get("dependencies", ()))


def _locked(path: Path) -> tuple[str, ...]:
    """`name==version` of every package of a lock that comes from an index."""
    packages = _toml(path).get("package", [])
    return tuple(
        f"{package['name']}=={package['version']}"
        for package in packages
        if "version" in package and "registry" in package.get("source", {})
    )


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path.name} is not TOML: {error}") from error
