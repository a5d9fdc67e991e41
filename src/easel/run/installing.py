"""Running an installer behind the walls: what it installs runs code, which may do there what it likes, and no more."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

from easel.errors import EaselError
from easel.run.conda import Conda
from easel.run.confinement import Limits
from easel.run.interpreters import interpreters
from easel.run.python_versions import Python, find_uv
from easel.run.requirements import PackageList
from easel.run.sandbox import INSIDE, UserProgram, Walls, start

_SECONDS = 1800.0
_TAIL = 30
_LOG_BYTES = 256 * 1024
POLL_S = 0.1
_AWAY = re.compile(
    r"NameResolutionError|NewConnectionError|ConnectTimeout|Connection refused|Failed to resolve|dns error"
    r"|Network is unreachable|error sending request|Could not resolve host|Failed to connect",
    re.IGNORECASE,
)
_NOT_FOUND = re.compile(r"No matching distribution|Could not find a version")
"""What pip says in the end where no index answered."""
_HOST = re.compile(r"host='([^']+)'|https?://([^/\s'\")]+)")


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
class Installation:
    """One run of an installer. `growing` is its folder: `work` and `tmp` of it are what it may write.

    When a method returns, nothing that was started lives any more, behind bubblewrap at least.
    """

    key: str
    growing: Path
    home: Path
    """The platform's own folder, which it must not see."""
    bwrap: str | None
    index: PackageIndex
    stopped: Callable[[], bool] = field(default=lambda: False)
    tell: Callable[[str], None] = field(default=lambda _: None)
    """Hears each line that the installer says, as it says it."""

    @property
    def site(self) -> Path:
        """Where packages were installed, if there were any."""
        return self.growing / "work" / "site"

    def prepare(self) -> None:
        for name in ("work", "tmp"):
            (self.growing / name).mkdir(parents=True)

    def install(self, wanted: PackageList, python: Python) -> None:
        """Installs packages into `site`, with the network where the index is elsewhere."""
        if not wanted.lines:
            return
        work = self.growing / "work"
        (work / "requirements.txt").write_text("\n".join(wanted.lines) + "\n")
        (work / "constraints.txt").write_text("\n".join(wanted.lock or wanted.constraints) + "\n")
        inside = INSIDE if self.bwrap else str(work)
        wheels = (self.index.wheels,) if self.index.wheels is not None else ()
        argv = [*_installer(python), "--target", f"{inside}/site", "-r", f"{inside}/requirements.txt"]
        argv += ["-c", f"{inside}/constraints.txt", *self.index.options()]
        self._run(argv, (python.base,), environments=wheels, network=self.index.wheels is None)

    def build_conda(self, conda: Conda, text: str, made: Path) -> None:
        """Fills `made` with what an `environment.yml` asks for."""
        (self.growing / "work" / "environment.yml").write_text(text)
        scratch = "/tmp" if self.bwrap else str(self.growing / "tmp")  # noqa: S108
        inside = INSIDE if self.bwrap else str(self.growing / "work")
        argv = conda.command(made, f"{inside}/environment.yml")
        self._run(argv, (conda.folder,), network=True, building=made, more=conda.variables(scratch))

    def _run(
        self,
        argv: Sequence[str],
        shown: tuple[Path, ...],
        *,
        environments: tuple[Path, ...] = (),
        network: bool,
        building: Path | None = None,
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Runs an installer behind the walls; NoEnvironment with the end of its log where it fails."""
        own, programs = interpreters(None)
        walls = Walls(
            work=self.growing / "work",
            tmp=self.growing / "tmp",
            input=None,
            interpreters=(*own, *shown),
            environments=environments,
            hidden=(self.home,),
            network=network,
            building=building,
            is_first=True,
        )
        variables = {"PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"}  # noqa: S108
        if not self.bwrap:
            variables["HOME"] = variables["TMPDIR"] = str(self.growing / "tmp")
        variables |= more
        log = self.growing / "build.log"
        with log.open("wb") as out, log.open("rb") as heard:
            program = UserProgram(f"environment-{self.key}", argv, variables, walls, Limits())
            process = start(self.bwrap, program, stdout=out, stderr=out)
            until = time.monotonic() + _SECONDS
            while process.poll() is None:
                self._pass_on(heard)
                stopped = self.stopped()
                if stopped or time.monotonic() > until:
                    process.kill()
                    process.wait()
                    raise NoEnvironment(
                        "building the environment was stopped" if stopped else "building took too long"
                    )
                time.sleep(POLL_S)
            self._pass_on(heard)
        if process.returncode != 0:
            said = _end_of(log)
            raise NoEnvironment(f"the environment cannot be built: {reason_of(said)[:300]}", said[-_TAIL:])

    def _pass_on(self, heard: BinaryIO) -> None:
        """Tells the whole lines that came since the last time."""
        begin = heard.tell()
        lines = heard.read(_LOG_BYTES)
        cut = lines.rfind(b"\n") + 1
        heard.seek(begin + (cut or (len(lines) if len(lines) == _LOG_BYTES else 0)))
        for line in lines[:cut].decode(errors="replace").splitlines():
            self.tell(line)


def reason_of(said: Sequence[str]) -> str:
    """Returns what of an installer's words says why it failed: warnings of what it tries again are not it."""
    told = [line.strip() for line in said if not line.lstrip().lower().startswith("warning")]
    errors = [line for line in told if "error" in line.lower()]
    away = [line for line in said if _AWAY.search(line)]
    if away and (any(_AWAY.search(line) for line in told) or all(_NOT_FOUND.search(line) for line in errors)):
        host = next(filter(None, map(_HOST.search, away)), None)
        which = f" at {host[1] or host[2]}" if host else ""
        return f"the package index{which} cannot be reached"
    return (errors or told[-1:] or ["it said nothing"])[0]


def _end_of(log: Path) -> list[str]:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _LOG_BYTES))
        return file.read(_LOG_BYTES).decode(errors="replace").splitlines()


def make_venv(python: Python, folder: Path) -> None:
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
