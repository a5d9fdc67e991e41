"""Environments of conda: `environment.yml`, solved and built by micromamba, mamba or conda where a device has one."""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from easel.declare.yaml_text import MAX_LENGTH, load_yaml
from easel.errors import InvalidInput

NAMES = ("environment.yml", "environment.yaml")
PROGRAMS = ("micromamba", "mamba", "conda")
_PLACES = ("/usr/local/bin", "/usr/bin", "/opt/conda/bin", "/opt/miniforge3/bin", "/opt/miniconda3/bin")


@dataclass(frozen=True, slots=True)
class CondaFile:
    """What an `environment.yml` asks for, as it is written."""

    text: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Conda:
    """A program of this machine that builds such environments."""

    program: Path

    @property
    def folder(self) -> Path:
        """What must be shown to run it: micromamba is one file, the others lie in an environment of their own."""
        is_alone = self.program.name == "micromamba"
        return self.program.parent if is_alone else self.program.resolve().parent.parent

    def command(self, prefix: Path, file: str) -> list[str]:
        """Returns the command line that builds `file` in `prefix`."""
        if self.program.name == "conda":
            return [str(self.program), "env", "create", "--yes", "--prefix", str(prefix), "--file", file]
        return [str(self.program), "create", "--yes", "--prefix", str(prefix), "--file", file]

    def variables(self, scratch: str) -> dict[str, str]:
        """Returns what keeps its caches in a folder that goes away."""
        return {"MAMBA_ROOT_PREFIX": f"{scratch}/mamba", "CONDA_PKGS_DIRS": f"{scratch}/pkgs"}


def find_conda() -> Conda | None:
    """Returns the first of these programs that this machine has."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *_PLACES])
    found = next((at for name in PROGRAMS if (at := shutil.which(name, path=path))), None)
    return None if found is None else Conda(Path(found))


def read_conda_file(path: Path) -> CondaFile:
    """Returns what the file asks for; InvalidInput where it is not one that can be built here."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_LENGTH + 1).decode()
        body: Any = load_yaml(text, yaml.SafeLoader, yaml.CSafeLoader, path.name)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path.name} is not YAML: {error}") from error
    packages = body.get("dependencies") if isinstance(body, dict) else None
    if not isinstance(packages, list):
        raise InvalidInput(f"{path.name} has no list of dependencies")
    names = [each for each in packages if isinstance(each, str)]
    if not any(_name(each) == "python" for each in names):
        raise InvalidInput(
            f"{path.name} does not name python: add it to the dependencies, as in `python=3.12`"
        )
    by_pip = [line for each in packages if isinstance(each, dict) for line in _listed(each.get("pip"))]
    reaching = next((line for line in by_pip if str(line).startswith(("-", ".", "/", "file:"))), None)
    if reaching is not None:
        raise InvalidInput(
            f"{path.name} names {str(reaching)[:80]!r} for pip: your own code goes along without being installed; "
            "name packages"
        )
    return CondaFile(text)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _name(package: str) -> str:
    """Returns the name in `conda-forge::python>=3.11`."""
    bare = package.rpartition("::")[2].strip()
    return bare[: next((i for i, sign in enumerate(bare) if sign in " =<>!~["), len(bare))].lower()
