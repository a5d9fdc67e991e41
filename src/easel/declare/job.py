"""What a user asks to have run. Frozen once submitted."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from keyword import iskeyword
from pathlib import PurePosixPath
from typing import Any, Literal

from easel.declare.names import label, slug
from easel.declare.resources import Resources
from easel.errors import InvalidInput

TagValue = str | float
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_VERSION = re.compile(r"[0-9]{1,2}\.[0-9]{1,3}(\.[0-9]{1,3})?")
_TARGET = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
MAX_ARGV_BYTES = 100_000
MAX_WORKERS = 256
RESERVED_PREFIX = "EASEL_"
TOLD_TO_POINTS = frozenset({"EASEL_DATA_FRACTION", "EASEL_POINT", "EASEL_SLICE_FROM"})
"""What a study tells the jobs of its points; whoever runs one by hand may set them too."""


@dataclass(frozen=True, slots=True)
class Command:
    """A program and its arguments, run in the sandbox with the code file set as working folder."""

    argv: tuple[str, ...]
    kind: Literal["command"] = "command"

    def __post_init__(self) -> None:
        if not self.argv or not self.argv[0]:
            raise InvalidInput("a command needs at least a program: easel run -- python train.py")
        if any("\x00" in part for part in self.argv):
            raise InvalidInput("a command cannot contain a NUL character")
        if sum(len(part.encode(errors="surrogatepass")) + 1 for part in self.argv) > MAX_ARGV_BYTES:
            raise InvalidInput(f"the command exceeds {MAX_ARGV_BYTES} bytes: put it in a file of the code")


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """A function `module:function` of the user's own code, called with JSON arguments inside the sandbox."""

    target: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    kind: Literal["entry"] = "entry"

    def __post_init__(self) -> None:
        _check_call(self.target, self.arguments)


@dataclass(frozen=True, slots=True)
class Pack:
    """Trials that one process trains as one program where they meet on a device; `size` is how many there are."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Trial:
    """A function of the platform itself, started by a warm fork server. Flows make these, requests never."""

    target: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    kind: Literal["trial"] = "trial"
    pack: Pack | None = None

    def __post_init__(self) -> None:
        _check_call(self.target, self.arguments)


@dataclass(frozen=True, slots=True)
class FreeRun:
    """Something that runs elsewhere and only keeps its record here. `user` is who its client says runs it."""

    user: str = ""
    kind: Literal["free"] = "free"


@dataclass(frozen=True, slots=True)
class Notebook:
    """A notebook of the code, its cells run in order; `parameters` override those of its cell tagged `parameters`.

    `first` is the code cell to begin with, counted from 1: of those before it only definitions are made again.
    """

    path: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    first: int = 1
    kind: Literal["notebook"] = "notebook"

    def __post_init__(self) -> None:
        path = PurePosixPath(self.path)
        if path.is_absolute() or ".." in path.parts or path.suffix != ".ipynb" or "\x00" in self.path:
            raise InvalidInput(f"{self.path[:80]!r} is not the path of a notebook (.ipynb) of the code")
        wrong = next((name for name in self.parameters if not name.isidentifier() or iskeyword(name)), None)
        if wrong is not None:
            raise InvalidInput(f"{wrong[:80]!r} cannot be a parameter: it is not a name in Python")
        _check_json(self.parameters, f"the parameters of {self.path}")
        if self.first < 1:
            raise InvalidInput("cells are counted from 1")


Runnable = Command | EntryPoint | Trial | FreeRun | Notebook


@dataclass(frozen=True, slots=True)
class Environment:
    """Where the command finds its interpreter and variables. `secrets` maps a variable to a secret's name."""

    python: str | None = None
    image: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    network: bool = False
    requirements: str | None = None
    """A file of the code that names packages: requirements.txt, pyproject.toml, uv.lock or environment.yml."""

    def __post_init__(self) -> None:
        if self.requirements is not None:
            path = PurePosixPath(self.requirements)
            if path.is_absolute() or ".." in path.parts or not path.parts or "\x00" in self.requirements:
                raise InvalidInput("environment.requirements is the path of a file of the code")
            if self.image is not None or (self.python is not None and not _VERSION.fullmatch(self.python)):
                raise InvalidInput(
                    "environment.requirements goes with neither an image nor an interpreter; a version (3.12) is fine"
                )
        for name in (*self.variables, *self.secrets):
            if not _VARIABLE.fullmatch(name):
                raise InvalidInput(f"{name!r} is not a valid name for an environment variable")
            if name.startswith(RESERVED_PREFIX) and name not in TOLD_TO_POINTS:
                raise InvalidInput(
                    f"variable {name} is reserved: the platform sets those that begin with EASEL_"
                )
        if any("\x00" in value for value in self.variables.values()):
            raise InvalidInput("an environment variable cannot contain a NUL character")
        for name in self.secrets.values():
            slug(name, "secret")
        if self.python is None or _VERSION.fullmatch(self.python):
            return
        if not PurePosixPath(self.python).is_absolute():
            raise InvalidInput(
                "environment.python is a version (3.12), or the absolute path of an interpreter or environment"
            )


@dataclass(frozen=True, slots=True)
class CodeOrigin:
    """Where code came from: the folder, its commit and branch, and the files that are programs.

    `changed` says that something was not committed; the difference lies in the code as `.easel/uncommitted.diff`.
    """

    folder: str = ""
    commit: str = ""
    branch: str = ""
    remote: str = ""
    changed: bool = False
    executable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RetryRule:
    """How often to try again: `lost` after a fault of the platform, `failed` after a failure of the job."""

    lost: int = 1
    failed: int = 0

    def __post_init__(self) -> None:
        if not (0 <= self.lost <= 100 and 0 <= self.failed <= 100):
            raise InvalidInput("a retry rule allows 0 to 100 repeats of each kind")


@dataclass(frozen=True, slots=True)
class JobSpec:
    """One job as asked for.

    `code` and `input` name file sets (`name`, `name:version`, or a path in the lake for code); in a pipeline
    `input` may be `step:NAME`. What the job leaves in `output_folder` becomes a version of the file set
    `output_set`; without a name the job's id names it. `workers` devices run it side by side, each with these
    resources; all of them have the labels that it `wants`. A trial goes on from the checkpoint in `resume`, the output
    of an earlier slice of it.
    """

    name: str
    run: Runnable
    code: str | None = None
    input: str | None = None
    output_folder: str = "output"
    output_set: str | None = None
    environment: Environment = field(default_factory=Environment)
    resources: Resources = field(default_factory=Resources)
    retry: RetryRule = field(default_factory=RetryRule)
    time_limit_s: float | None = None
    tags: Mapping[str, TagValue] = field(default_factory=dict)
    description: str = ""
    workers: int = 1
    wants: Mapping[str, str] = field(default_factory=dict)
    origin: CodeOrigin | None = None
    resume: str | None = None
    port: int | None = None
    """Of an interactive session: where its program serves pages, to its owner alone."""
    preemptible: bool = False
    """Whether it may be stopped for somebody with a better claim and tried again: it keeps a checkpoint folder."""
    slice: bool = False
    """Whether it is a slice of a longer run: its checkpoint folder becomes part of its output, for the next one."""

    def __post_init__(self) -> None:
        if self.port is not None and not 1024 <= self.port <= 65535:
            raise InvalidInput(f"port {self.port} must be between 1024 and 65535")
        label(self.name, "a job's name")
        folder = PurePosixPath(self.output_folder)
        if folder.is_absolute() or ".." in folder.parts or not folder.parts or "\x00" in self.output_folder:
            raise InvalidInput(
                f"output_folder {self.output_folder!r} must lie in the job's folder: ./output/"
            )
        if self.output_set is not None:
            slug(self.output_set, "output file set")
        if self.time_limit_s is not None and not (0 < self.time_limit_s <= 366 * 86400):
            raise InvalidInput("time_limit_s must be more than 0 seconds and at most a year")
        for key, value in self.tags.items():
            label(key, "a tag's key")
            if isinstance(value, float) and not math.isfinite(value):
                raise InvalidInput(f"tag {key!r} must be a finite number or text")
        if not 1 <= self.workers <= MAX_WORKERS:
            raise InvalidInput(f"a job runs on 1 to {MAX_WORKERS} workers, not {self.workers}")
        for key, text in self.wants.items():
            label(key, "a device label")
            label(text, f"the device label {key!r}")
        if len(self.description) > 10_000:
            raise InvalidInput("the description is longer than 10,000 characters")


def _check_call(target: str, arguments: Mapping[str, Any]) -> None:
    if not _TARGET.fullmatch(target):
        raise InvalidInput(f"entry point {target[:80]!r} is not of the form package.module:function")
    _check_json(arguments, f"the arguments of {target}")


def _check_json(values: Mapping[str, Any], what: str) -> None:
    try:
        size = len(json.dumps(dict(values), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{what} are not JSON: {error}") from error
    if size > 1_000_000:
        raise InvalidInput(f"{what} exceed 1 MB: put them in the input file set")
