"""Environments of jobs: built once on each machine, kept by what was asked for, shared read-only, cleaned up.

Packages are installed behind the walls (installing runs their code) into a folder that is then put into a virtual
environment of the machine's own Python. Nothing is installed into the server's environment.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from easel.run.conda import CondaFile, find_conda
from easel.run.installing import Installation, NoEnvironment, PackageIndex, make_venv
from easel.run.move_in import (
    add_light_core,
    installed_by_conda,
    installed_in,
    make_readable,
    move_in,
    site_packages,
)
from easel.run.python_versions import Python, own_python
from easel.run.requirements import PackageList
from easel.run.untrusted_files import is_folder

_ACCOUNT = ".json"
"""Beside the folder of each environment, out of reach of what is installed: that it is whole, and what is in it."""
_GROWING, _BUILDING, _USED = ".growing", ".building", ".lock"


@dataclass(frozen=True, slots=True)
class BuiltEnvironment:
    """`folder` is a virtual environment; `locked` lists what is installed in it, as name==version."""

    key: str
    folder: Path
    locked: tuple[str, ...]
    seconds: float
    """What building took; 0 where it was there."""
    base: Path | None = None
    """The folder of the Python that it is made of; None where it holds its own."""


Wanted = PackageList | CondaFile


@dataclass(frozen=True, slots=True)
class Environments:
    """Those of one machine, in `folder`. What was not used for `days`, or is beyond `most_mb`, goes."""

    folder: Path
    bwrap: str | None
    index: PackageIndex = field(default_factory=PackageIndex)
    days: float = 30.0
    most_mb: int = 20_480

    def key(self, project: str, wanted: Wanted, python: Python | None = None) -> str:
        """Returns the hash of all that decides what is built; projects share nothing, for installing runs code."""
        if isinstance(wanted, CondaFile):
            asked: list[object] = [project, wanted.digest]
        else:
            asked = [project, wanted.lines, wanted.constraints, self.index.url, str(self.index.wheels)]
            asked += [sys.version] if python is None else [python.version, str(python.program)]
        asked += [platform.machine(), sys.platform]
        return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:24]

    def get(
        self,
        project: str,
        wanted: Wanted,
        stopped: Callable[[], bool] = lambda: False,
        python: Python | None = None,
    ) -> BuiltEnvironment:
        """Returns the environment, built where it is not here; whoever wants the same meanwhile waits for it.

        `python` is the interpreter that it is made of, where it is not the one that runs Easel.
        """
        key = self.key(project, wanted, python)
        known = self._known(key)
        if known is not None:
            return known
        with self._alone(key):
            known = self._known(key)
            if known is not None:
                return known
            self.clean()
            if not self._remove(self.folder / key):
                raise NoEnvironment(
                    "jobs of an earlier release use this environment: try again when they are over"
                )
            growing = self.folder / f"{key}{_GROWING}"
            home = self.folder.parent.parent
            installation = Installation(key, growing, home, self.bwrap, self.index, stopped)
            try:
                installation.prepare()
                if isinstance(wanted, CondaFile):
                    return self._build_conda(installation, wanted)
                return self._build(installation, wanted, python or own_python())
            finally:
                shutil.rmtree(growing, ignore_errors=True)

    def _known(self, key: str) -> BuiltEnvironment | None:
        folder = self.folder / key
        try:
            about = json.loads(self._account(key).read_bytes())
            os.utime(folder)
        except (OSError, ValueError):
            return None
        base = about["base"]
        return BuiltEnvironment(key, folder, tuple(about["locked"]), 0.0, Path(base) if base else None)

    def _account(self, key: str) -> Path:
        return self.folder / f"{key}{_ACCOUNT}"

    def _build(self, installation: Installation, wanted: PackageList, python: Python) -> BuiltEnvironment:
        key, began = installation.key, time.monotonic()
        installation.install(wanted, python)
        made, final = installation.growing / "environment", self.folder / key
        make_venv(python, made)
        site = next(made.glob("lib/python*/site-packages"))
        if os.path.lexists(installation.site):
            if not is_folder(installation.site):
                raise NoEnvironment(
                    "what was installed made a link of the folder of packages: nothing of it is kept"
                )
            move_in(installation.site, site, made, final)
        locked = tuple(sorted(installed_in(site)))
        add_light_core(site)
        make_readable(made)
        made.rename(final)
        self._keep(key, locked, python.base)
        return BuiltEnvironment(key, final, locked, time.monotonic() - began, python.base)

    def _build_conda(self, installation: Installation, wanted: CondaFile) -> BuiltEnvironment:
        """Builds in its final place: what conda installs holds its own path. Without its account nobody uses it."""
        conda = find_conda()
        if conda is None:
            raise NoEnvironment(
                "this device has neither micromamba nor mamba nor conda to build an environment.yml with: name "
                "packages in a requirements.txt, run with the device's own (`--requirements none`), or ask "
                "an admin to install micromamba there"
            )
        key, began, made = installation.key, time.monotonic(), self.folder / installation.key
        made.mkdir()
        try:
            installation.build_conda(conda, wanted.text, made)
            site = site_packages(made)
            if site is None:
                raise NoEnvironment("the environment.yml was built without a Python: name python in it")
            locked = tuple(sorted({*installed_by_conda(made), *installed_in(site)}))
            add_light_core(site)
            make_readable(made)
            self._keep(key, locked, None)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
        return BuiltEnvironment(key, made, locked, time.monotonic() - began)

    def _keep(self, key: str, locked: tuple[str, ...], base: Path | None) -> None:
        """Says that the environment is whole: from now on it is used."""
        half = self.folder / f"{key}.half"
        half.write_text(json.dumps({"locked": locked, "base": str(base or "")}))
        half.replace(self._account(key))

    def clean(self) -> None:
        """Remove what was not used for long, then the longest unused until the rest is small enough.

        What a killed agent left half-built goes at once.
        """
        found = [path for path in self.folder.iterdir() if is_folder(path)]
        whole = [path for path in found if self._account(path.name).is_file()]
        for key in {path.name.removesuffix(_GROWING) for path in found} - {path.name for path in whole}:
            with self._alone(key, wait=False) as alone:
                if alone and not self._account(key).is_file():
                    self._remove(self.folder / key)
        kept = sorted(whole, key=lambda path: path.stat().st_mtime)
        oldest = time.time() - self.days * 86400
        sizes = {path: _size(path) for path in kept}
        total = sum(sizes.values())
        for path in kept:
            if path.stat().st_mtime >= oldest and total <= self.most_mb << 20:
                continue
            if self._remove(path):
                total -= sizes[path]

    def _remove(self, path: Path) -> bool:
        """Removes an environment unless a job uses it."""
        with (self.folder / f"{path.name}{_USED}").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            self._forget(path.name)
            return True

    def _forget(self, key: str) -> None:
        """Removes what is there of an environment, whole or not."""
        self._account(key).unlink(missing_ok=True)
        for folder in (self.folder / key, self.folder / f"{key}{_GROWING}"):
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def _alone(self, key: str, *, wait: bool = True) -> Iterator[bool]:
        """Lets one at a time build it; where nobody is to wait, False if somebody does."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / f"{key}{_BUILDING}").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True

    @contextmanager
    def in_use(self, key: str) -> Iterator[None]:
        """Keeps an environment from being cleaned away while a job runs in it."""
        with (self.folder / f"{key}{_USED}").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            yield


def environments_of(home: Path, bwrap: str | None, index: PackageIndex) -> Environments:
    """Returns the environments of a worker's home."""
    return Environments(home / "run" / "environments", bwrap, index)


def _size(folder: Path) -> int:
    return sum((Path(root) / name).lstat().st_size for root, _, names in os.walk(folder) for name in names)
