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
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from easel.errors import EaselError
from easel.run.conda import Conda, CondaFile, find_conda, installed_by_conda
from easel.run.confinement import Limits
from easel.run.interpreters import interpreters
from easel.run.python_versions import Python, find_uv, own_python
from easel.run.requirements import PackageList
from easel.run.sandbox import INSIDE, UserProgram, Walls, start

_LIGHT = (
    "__init__.py",
    "version.py",
    "errors.py",
    "clock.py",
    "ids.py",
    "metrics.py",
    "sdk",
    "wire",
    "declare",
    "lake",
)
"""What `import easel` needs in a job: `easel.log_metric` and, where its packages are there, the client."""
_MARK = "environment.json"
_SECONDS = 1800.0
_TAIL = 30
POLL_S = 0.1


class NoEnvironment(EaselError):
    """The environment could not be built: says what the installer said."""

    kind = "no-environment"

    def __init__(self, message: str, log: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.log = tuple(log)


@dataclass(frozen=True, slots=True)
class PackageIndex:
    """Where packages come from: an index (None: the installer's own), or wheels in a folder of the machine alone."""

    url: str | None = None
    wheels: Path | None = None

    def options(self) -> list[str]:
        if self.wheels is not None:
            return ["--no-index", "--find-links", str(self.wheels)]
        return ["--index-url", self.url] if self.url else []


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
            if isinstance(wanted, CondaFile):
                return self._build_conda(key, wanted, stopped)
            return self._build(key, wanted, stopped, python or own_python())

    def _known(self, key: str) -> BuiltEnvironment | None:
        folder = self.folder / key
        try:
            about = json.loads((folder / _MARK).read_bytes())
            os.utime(folder)
        except (OSError, ValueError):
            return None
        base = about.get("base", sys.base_prefix)
        return BuiltEnvironment(key, folder, tuple(about["locked"]), 0.0, Path(base) if base else None)

    def _build(
        self, key: str, wanted: PackageList, stopped: Callable[[], bool], python: Python
    ) -> BuiltEnvironment:
        began = time.monotonic()
        growing = self.folder / f"{key}.growing"
        shutil.rmtree(growing, ignore_errors=True)
        for name in ("work", "tmp"):
            (growing / name).mkdir(parents=True)
        try:
            self._install(key, growing, wanted, stopped, python)
            made = growing / "environment"
            _make_venv(python, made)
            site = next(made.glob("lib/python*/site-packages"))
            installed = growing / "work" / "site"
            if installed.is_dir():
                _move_in(installed, site, made, self.folder / key)
            locked = tuple(sorted(_installed(site)))
            _add_light_core(site)
            about = {"locked": locked, "asked": wanted.lines, "base": str(python.base)}
            (made / _MARK).write_text(json.dumps(about))
            _readable(made)
            made.rename(self.folder / key)
        finally:
            shutil.rmtree(growing, ignore_errors=True)
        return BuiltEnvironment(key, self.folder / key, locked, time.monotonic() - began, python.base)

    def _build_conda(self, key: str, wanted: CondaFile, stopped: Callable[[], bool]) -> BuiltEnvironment:
        """Builds in its final place: what conda installs holds its own path. Without its mark nobody uses it."""
        conda = find_conda()
        if conda is None:
            raise NoEnvironment(
                "this device has neither micromamba nor mamba nor conda to build an environment.yml with: name "
                "packages in a requirements.txt, run with the device's own (`--requirements none`), or ask "
                "an admin to install micromamba there"
            )
        began, made, growing = time.monotonic(), self.folder / key, self.folder / f"{key}.growing"
        for folder in (made, growing):
            shutil.rmtree(folder, ignore_errors=True)
        for folder in (made, growing / "work", growing / "tmp"):
            folder.mkdir(parents=True)
        try:
            (growing / "work" / "environment.yml").write_text(wanted.text)
            self._run_conda(conda, key, growing, made, stopped)
            site = next(made.glob("lib/python*/site-packages"), None)
            if site is None:
                raise NoEnvironment("the environment.yml was built without a Python: name python in it")
            locked = tuple(sorted({*installed_by_conda(made), *_installed(site)}))
            _add_light_core(site)
            _readable(made)
            (made / _MARK).write_text(json.dumps({"locked": locked, "asked": wanted.text, "base": ""}))
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
        finally:
            shutil.rmtree(growing, ignore_errors=True)
        return BuiltEnvironment(key, made, locked, time.monotonic() - began)

    def _run_conda(
        self, conda: Conda, key: str, growing: Path, made: Path, stopped: Callable[[], bool]
    ) -> None:
        shown, programs = interpreters(None)
        scratch = "/tmp" if self.bwrap else str(growing / "tmp")  # noqa: S108
        walls = Walls(
            work=growing / "work",
            tmp=growing / "tmp",
            input=None,
            interpreters=(*shown, conda.folder),
            hidden=(self.folder.parent.parent,),
            network=True,
            building=made,
        )
        inside = INSIDE if self.bwrap else str(growing / "work")
        argv = conda.command(made, f"{inside}/environment.yml")
        self._run(key, growing, argv, walls, programs, stopped, conda.variables(scratch))

    def _install(
        self, key: str, growing: Path, wanted: PackageList, stopped: Callable[[], bool], python: Python
    ) -> None:
        """Installs in the sandbox, with the network where the index is elsewhere; the log is the installer's own."""
        if not wanted.lines:
            return
        work = growing / "work"
        (work / "requirements.txt").write_text("\n".join(wanted.lines) + "\n")
        (work / "constraints.txt").write_text("\n".join(wanted.constraints) + "\n")
        inside = INSIDE if self.bwrap else str(work)
        shown, programs = interpreters(None)
        wheels = (self.index.wheels,) if self.index.wheels is not None else ()
        walls = Walls(
            work=work,
            tmp=growing / "tmp",
            input=None,
            interpreters=(*shown, python.base),
            environments=wheels,
            hidden=(self.folder.parent.parent,),
            network=self.index.wheels is None,
        )
        argv = [*_installer(python), "--target", f"{inside}/site", "-r", f"{inside}/requirements.txt"]
        argv += ["-c", f"{inside}/constraints.txt", *self.index.options()]
        self._run(key, growing, argv, walls, programs, stopped)

    def _run(
        self,
        key: str,
        growing: Path,
        argv: Sequence[str],
        walls: Walls,
        programs: Path,
        stopped: Callable[[], bool],
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Runs an installer behind the walls; NoEnvironment with the end of its log where it fails."""
        variables = {"PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"}  # noqa: S108
        if not self.bwrap:
            variables["HOME"] = variables["TMPDIR"] = str(growing / "tmp")
        variables |= more
        log = growing / "build.log"
        with log.open("wb") as out:
            program = UserProgram(f"environment-{key}", argv, variables, walls, Limits())
            process = start(self.bwrap, program, stdout=out, stderr=out)
            until = time.monotonic() + _SECONDS
            while process.poll() is None:
                if stopped() or time.monotonic() > until:
                    process.kill()
                    process.wait()
                    raise NoEnvironment(
                        "building the environment was stopped" if stopped() else "building took too long"
                    )
                time.sleep(POLL_S)
        if process.returncode != 0:
            said = log.read_text(errors="replace").splitlines()
            errors = [line for line in said if "error" in line.lower()] or said[-1:] or ["it said nothing"]
            raise NoEnvironment(f"the environment cannot be built: {errors[0].strip()[:300]}", said[-_TAIL:])

    def clean(self) -> None:
        """Remove what was not used for long, then the longest unused until the rest is small enough."""
        found = [path for path in self.folder.iterdir() if (path / _MARK).is_file()]
        kept = sorted(found, key=lambda path: path.stat().st_mtime)
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
        with (self.folder / f"{path.name}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            shutil.rmtree(path, ignore_errors=True)
            return True

    @contextmanager
    def _alone(self, key: str) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / f"{key}.building").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextmanager
    def in_use(self, key: str) -> Iterator[None]:
        """Keeps an environment from being cleaned away while a job runs in it."""
        with (self.folder / f"{key}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            yield


def environments_of(home: Path, bwrap: str | None, index: PackageIndex) -> Environments:
    """Returns the environments of a worker's home."""
    return Environments(home / "run" / "environments", bwrap, index)


def _make_venv(python: Python, folder: Path) -> None:
    """Makes an empty virtual environment of that Python."""
    command = [str(python.program), "-I", "-m", "venv", "--without-pip", "--symlinks", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - an admin's Python
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines()
        raise NoEnvironment(
            f"Python {python.version} of this device makes no environments: {(said or ['it said nothing'])[-1][:300]}",
            said[-_TAIL:],
        )


def _installer(python: Python) -> list[str]:
    """uv where it is among the machine's own programs, else the pip of the Python that runs Easel."""
    uv = find_uv()
    if uv is not None:
        return [uv, "pip", "install", "--no-cache", "--python", str(python.program)]
    known = subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False)
    if known.returncode != 0:
        raise NoEnvironment(
            "this device has neither uv nor pip to build environments with: install one of them"
        )
    other = [] if python.program == Path(sys.executable) else ["--python", str(python.program)]
    return [
        sys.executable,
        "-m",
        "pip",
        *other,
        "install",
        "--no-input",
        "--disable-pip-version-check",
        "--no-cache-dir",
    ]


def _move_in(installed: Path, site: Path, made: Path, final: Path) -> None:
    """Packages to site-packages, programs to bin; what names the building Python names the environment's then."""
    programs = installed / "bin"
    if programs.is_dir() and not programs.is_symlink():
        for program in programs.iterdir():
            if program.is_symlink() or not program.is_file():
                continue
            data = program.read_bytes()
            head, _, rest = data.partition(b"\n")
            if re.match(rb"#!.*python", head):
                data = b"#!" + str(final / "bin" / "python").encode() + b"\n" + rest
            (made / "bin" / program.name).write_bytes(data)
            (made / "bin" / program.name).chmod(0o755)
        shutil.rmtree(programs)
    for entry in installed.iterdir():
        shutil.move(str(entry), str(site / entry.name))


def _installed(site: Path) -> Iterator[str]:
    for info in site.glob("*.dist-info"):
        name, _, version = info.name.removesuffix(".dist-info").rpartition("-")
        yield f"{name.replace('_', '-')}=={version}"


def _add_light_core(site: Path) -> None:
    """`import easel` works in every environment; one that asked for Easel has its own."""
    if (site / "easel").exists():
        return
    source = Path(__file__).parents[1]
    ignored = shutil.ignore_patterns("__pycache__")
    (site / "easel").mkdir()
    for name in _LIGHT:
        if (source / name).is_dir():
            shutil.copytree(source / name, site / "easel" / name, ignore=ignored)
        else:
            shutil.copy2(source / name, site / "easel" / name)


def _readable(folder: Path) -> None:
    """Makes all of it readable for every job's user, and writable for none."""
    for root, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(root) / name
            if os.geteuid() == 0:
                os.chown(path, 0, 0, follow_symlinks=False)
            if not path.is_symlink():
                mode = path.stat().st_mode
                path.chmod(0o755 if path.is_dir() or mode & 0o100 else 0o644)
    folder.chmod(0o755)


def _size(folder: Path) -> int:
    return sum((Path(root) / name).lstat().st_size for root, _, names in os.walk(folder) for name in names)
