"""Environments of jobs: built once on each machine, kept by what was asked for, shared read-only, cleaned up.

Packages are installed behind the walls (installing runs their code) into a folder that is then put into a virtual
environment of the machine's own Python. Nothing is installed into the server's environment.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from easel.run.conda import CondaFile, find_conda
from easel.run.installing import POLL_S, Installation, NoEnvironment, PackageIndex, make_venv
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
_LOCKED_BEFORE = (
    "Its versions were chosen when the project first ran with this file; they are chosen anew after any change of the "
    "file, be it a comment"
)
_BUILT_FOR = ".built"
"""A file beside them, of a request, that names what was built for it."""


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
        return _hashed(asked)

    def get(
        self,
        project: str,
        wanted: Wanted,
        stopped: Callable[[], bool] = lambda: False,
        python: Python | None = None,
        *,
        lock: Sequence[str] | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> BuiltEnvironment:
        """Returns the environment, built where it is not here; whoever wants the same meanwhile waits for it.

        `python` is the interpreter that it is made of, where it is not the one that runs Easel. `lock` is what the
        same requirements were locked to before, maybe on another machine: then these versions are installed. `tell`
        hears what is done.
        """
        asked = self.key(project, wanted, python)
        if lock is not None and isinstance(wanted, PackageList):
            asked, wanted = _of_content(asked, lock), wanted.locked_to(lock)
        known = self._known(asked)
        if known is not None:
            return known
        with self._alone(asked, stopped, tell):
            known = self._known(asked)
            if known is not None:
                return known
            self.clean()
            if not self._remove(self.folder / asked):
                raise NoEnvironment(
                    "jobs of an earlier release use this environment: try again when they are over"
                )
            growing = self.folder / f"{asked}{_GROWING}"
            home = self.folder.parent.parent
            installation = Installation(asked, growing, home, self.bwrap, self.index, stopped, tell)
            tell("the environment is built; what the installer says:")
            try:
                installation.prepare()
                if isinstance(wanted, CondaFile):
                    return self._build_conda(installation, wanted)
                base = self.key(project, wanted, python)
                return self._build(installation, wanted, python or own_python(), base)
            except NoEnvironment as error:
                if lock is None or isinstance(wanted, CondaFile) or stopped():
                    raise
                raise NoEnvironment(f"{error.message}. {_LOCKED_BEFORE}", error.log) from error
            finally:
                shutil.rmtree(growing, ignore_errors=True)

    def _known(self, asked: str) -> BuiltEnvironment | None:
        key = self._built_for(asked)
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

    def _built_for(self, asked: str) -> str:
        """Returns the name of what was built for a request: the hash of what that was locked to."""
        try:
            return (self.folder / f"{asked}{_BUILT_FOR}").read_text()
        except OSError:
            return asked

    def _build(
        self, installation: Installation, wanted: PackageList, python: Python, base: str
    ) -> BuiltEnvironment:
        began = time.monotonic()
        installation.install(wanted, python)
        made = installation.growing / "environment"
        locked = tuple(sorted(installed_in(installation.site))) if is_folder(installation.site) else ()
        key = _of_content(base, locked)
        final = self.folder / key
        with self._alone(key) if key != installation.key else contextlib.nullcontext():
            if self._known(key) is None:
                shutil.rmtree(final, ignore_errors=True)  # without its account nobody uses it
                self._put_together(installation, python, made, final)
                self._keep(key, locked, python.base)
            if key != installation.key:
                (self.folder / f"{installation.key}{_BUILT_FOR}").write_text(key)
        return BuiltEnvironment(key, final, locked, time.monotonic() - began, python.base)

    def _put_together(self, installation: Installation, python: Python, made: Path, final: Path) -> None:
        make_venv(python, made)
        site = next(made.glob("lib/python*/site-packages"))
        if os.path.lexists(installation.site):
            if not is_folder(installation.site):
                raise NoEnvironment(
                    "what was installed made a link of the folder of packages: nothing of it is kept"
                )
            move_in(installation.site, site, made, final)
        add_light_core(site)
        make_readable(made)
        made.rename(final)

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
        for pointer in self.folder.glob(f"*{_BUILT_FOR}"):
            if not self._account(self._built_for(pointer.name.removesuffix(_BUILT_FOR))).is_file():
                pointer.unlink(missing_ok=True)
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
    def _alone(
        self,
        key: str,
        stopped: Callable[[], bool] = lambda: False,
        tell: Callable[[str], None] = lambda _: None,
        *,
        wait: bool = True,
    ) -> Iterator[bool]:
        """Lets one at a time build it; where nobody is to wait, False if somebody does."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / f"{key}{_BUILDING}").open("w") as file:
            told = False
            while not _locked(file):
                if not wait:
                    yield False
                    return
                if stopped():
                    raise NoEnvironment("waiting for the environment was stopped")
                if not told:
                    tell("another job builds this environment: this one waits for it")
                    told = True
                time.sleep(POLL_S)
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


def _hashed(asked: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:24]


def _of_content(asked: str, locked: Sequence[str]) -> str:
    """Returns the name of an environment: the hash of what was asked for and of what that was locked to."""
    return _hashed([asked, sorted(locked)])


def lock_key(wanted: PackageList, python: Python | None = None) -> str:
    """Returns the hash of all that decides what requirements are locked to: what they say, the Python, the machine."""
    version = platform.python_version() if python is None else python.version
    minor = version.split(".")[:2]
    return _hashed([wanted.lines, wanted.constraints, minor, platform.machine(), sys.platform])


def _locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _size(folder: Path) -> int:
    return sum((Path(root) / name).lstat().st_size for root, _, names in os.walk(folder) for name in names)
