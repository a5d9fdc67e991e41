"""The entries of an attempt's journal: a type for each kind, and the one place where they become JSON and back.

An entry on disk and on the wire is an object with `n` its number, `at` its time, `m` the monotonic clock of the
machine that wrote it, `k` its kind, and what its kind says. Entries of older releases have no `m`.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from easel.declare.unicode import storable
from easel.errors import InvalidInput
from easel.records.attempt import EndReason
from easel.records.job import JobState, StoredFile, Usage

Wire = dict[str, Any]
"""An entry as JSON. Nobody outside of this module looks into it."""
ORDER_NUMBER = -1
"""The order itself is the journal's first line, before what the attempt says."""
MOST_REASON = 10_000
"""Characters of a reason."""
OLD_END_NUMBER = 10**9
"""Older workers numbered the end that they wrote for a dead process so, whatever came before it."""


@dataclass(frozen=True, slots=True)
class OrderTaken:
    """The order, and the GPUs that the worker chose for it."""

    order: Any
    gpus: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ProcessBorn:
    """How to recognise the process again: pids are reused, a pid with its start time and boot is not."""

    pid: int
    start: int | None
    boot: str


@dataclass(frozen=True, slots=True)
class StateReached:
    state: JobState
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class UsageSoFar:
    usage: Usage


@dataclass(frozen=True, slots=True)
class LoggedLines:
    """Whole lines of one stream: `size` bytes of the attempt's log file from `offset`, or the bytes themselves."""

    stream: str
    lines: int
    offset: int = 0
    size: int = 0
    data: bytes | None = None


@dataclass(frozen=True, slots=True)
class MetricPoints:
    """(name, step, value); what is no number is its name as text, because JSON has neither NaN nor infinity."""

    points: Sequence[tuple[str, int, float | str]]


@dataclass(frozen=True, slots=True)
class TagsSet:
    """(of, key, value): tags that the job gave itself or its output."""

    tags: Sequence[tuple[str, str, str | float]]


@dataclass(frozen=True, slots=True)
class EnvironmentLocked:
    """The packages that it runs with, as name==version. `asked` is the hash of the requirements file, `lock` names what
    that asks for on this kind of machine."""

    name: str
    asked: str
    lock: str
    python: str
    packages: Sequence[str]


@dataclass(frozen=True, slots=True)
class ProgressMade:
    fraction: float


@dataclass(frozen=True, slots=True)
class CellRun:
    """A cell of a notebook as it stands (-1: the notebook as it begins); `data` is its JSON, compressed."""

    cell: int
    state: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Kept:
    """What a job left.

    Bytes that are few travel in the report (`inline`, by digest) and are stored together with other jobs' by
    whoever commits: one write to disk for many small outputs.
    """

    files: Sequence[StoredFile]
    inline: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResultTold:
    value: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AttemptDone:
    """It ended well. The last entry."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """It failed; `final` when trying again cannot help. The last entry."""

    end: EndReason
    reason: str
    exit_code: int | None = None
    final: bool = False
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class AttemptLost:
    """Its process is gone and wrote no end: the worker did. The last entry."""

    end: EndReason
    reason: str


EntryBody = (
    OrderTaken
    | ProcessBorn
    | StateReached
    | UsageSoFar
    | LoggedLines
    | MetricPoints
    | TagsSet
    | EnvironmentLocked
    | ProgressMade
    | CellRun
    | Kept
    | ResultTold
    | AttemptDone
    | AttemptEnded
    | AttemptLost
)
LAST = (AttemptDone, AttemptEnded, AttemptLost)


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One entry: its number, when it was written, by the wall and by the machine's own clock, and what it says."""

    number: int
    at: float
    body: EntryBody
    monotonic: float | None = None

    @property
    def moment(self) -> datetime:
        return datetime.fromtimestamp(self.at, UTC)

    @property
    def last(self) -> bool:
        return isinstance(self.body, LAST)


def following(entries: Sequence[JournalEntry], known: int) -> tuple[list[JournalEntry], bool]:
    """Returns the entries after the first `known` of a journal, and whether one is missing before the rest."""
    found: list[JournalEntry] = []
    for entry in entries:
        if entry.number < known:
            continue
        if entry.number > known and entry.number < OLD_END_NUMBER:
            return found, True
        found.append(entry)
        known = entry.number + 1
    return found, False


# Writing. ---------------------------------------------------------------------------------------------------


def encode_entry(entry: JournalEntry) -> Wire:
    """The entry as a JSON object."""
    kind, fields = _encode_body(entry.body)
    head: Wire = {"n": entry.number, "at": entry.at}
    if entry.monotonic is not None:
        head["m"] = entry.monotonic
    return {**head, "k": kind, **fields}


def write_line(entry: JournalEntry) -> bytes:
    return json.dumps(encode_entry(entry), separators=(",", ":")).encode() + b"\n"


def _encode_body(body: EntryBody) -> tuple[str, Wire]:
    match body:
        case OrderTaken(order, gpus):
            return "order", {"order": [order, list(gpus)]}
        case ProcessBorn():
            return "born", asdict(body)
        case StateReached(state, usage):
            return "reached", {"state": state.value, **({"usage": asdict(usage)} if usage else {})}
        case UsageSoFar(usage):
            return "usage", {"v": asdict(usage)}
        case LoggedLines(stream, lines, offset, size, data):
            said = {} if data is None else {"data": b64encode(data).decode()}
            return "log", {"o": offset, "s": size, "f": stream, "lines": lines, **said}
        case MetricPoints(points):
            return "metrics", {"v": [list(point) for point in points]}
        case TagsSet(tags):
            return "tags", {"v": [list(tag) for tag in tags]}
        case EnvironmentLocked(name, asked, lock, python, packages):
            return "environment", {"v": [name, asked, lock, python, list(packages)]}
        case ProgressMade(fraction):
            return "progress", {"v": fraction}
        case CellRun(cell, state, data):
            return "cell", {"cell": cell, "state": state, "data": b64encode(data).decode()}
        case Kept(files, inline):
            return "output", {
                "files": [[f.path, f.digest, f.size, f.object, f.offset] for f in files],
                "inline": {digest: b64encode(data).decode() for digest, data in inline.items()},
            }
        case ResultTold(value):
            return "result", {"v": value}
        case AttemptDone(usage):
            return "done", {"usage": asdict(usage)}
        case AttemptEnded(end, reason, exit_code, final, usage):
            used = asdict(usage) if usage else None
            told = {"end": end.value, "reason": reason, "code": exit_code, "final": final, "usage": used}
            return "ended", told
        case AttemptLost(end, reason):
            return "lost", {"end": end.value, "reason": reason}


def wire_size(wire: Wire) -> int:
    """About how many bytes the entry takes as JSON, without writing it."""
    if wire["k"] in ("output", "result"):
        return len(json.dumps(wire)) + 300
    return len(wire.get("data", "")) + 300


# Reading. ---------------------------------------------------------------------------------------------------


def decode_entry(wire: Wire) -> JournalEntry:
    """The entry that a JSON object is; refuses what no worker writes."""
    try:
        body = _READERS[wire["k"]](wire)
        monotonic = wire.get("m")
        return JournalEntry(
            int(wire["n"]),
            float(wire.get("at", 0.0)),
            body,
            None if monotonic is None else float(monotonic),
        )
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise InvalidInput(f"this is no entry of a journal: {type(error).__name__}: {error}") from error


def read_line(line: bytes) -> JournalEntry:
    try:
        return decode_entry(json.loads(line))
    except json.JSONDecodeError as error:
        raise InvalidInput(f"this line of a journal is damaged: {line[:60]!r}") from error


def _usage(body: Mapping[str, Any] | None) -> Usage | None:
    return Usage(**body) if body else None


def _end(wire: Wire) -> EndReason:
    try:
        return EndReason(wire.get("end", EndReason.OTHER))
    except ValueError:  # a newer worker's: its sentence says it
        return EndReason.OTHER


def _reason(wire: Wire) -> str:
    """What user code said may stand in it."""
    return storable(str(wire["reason"]))[:MOST_REASON]


def _log(wire: Wire) -> LoggedLines:
    data = wire.get("data")
    offset, size = int(wire.get("o", 0)), int(wire.get("s", 0))
    return LoggedLines(wire["f"], int(wire["lines"]), offset, size, None if data is None else b64decode(data))


def _output(wire: Wire) -> Kept:
    files = [StoredFile(*file) for file in wire["files"]]
    return Kept(files, {digest: b64decode(text) for digest, text in wire["inline"].items()})


def _environment(wire: Wire) -> EnvironmentLocked:
    name, asked, lock, python, packages = wire["v"]
    return EnvironmentLocked(
        str(name), str(asked), str(lock), str(python), tuple(str(package) for package in packages)
    )


def _ended(wire: Wire) -> AttemptEnded:
    code = wire["code"]
    return AttemptEnded(_end(wire), _reason(wire), code, bool(wire["final"]), _usage(wire.get("usage")))


_READERS: dict[str, Callable[[Wire], EntryBody]] = {
    "order": lambda wire: OrderTaken(wire["order"][0], tuple(wire["order"][1])),
    "born": lambda wire: ProcessBorn(int(wire["pid"]), wire["start"], wire["boot"]),
    "reached": lambda wire: StateReached(JobState(wire["state"]), _usage(wire.get("usage"))),
    "usage": lambda wire: UsageSoFar(Usage(**wire["v"])),
    "log": _log,
    "metrics": lambda wire: MetricPoints([(name, step, value) for name, step, value in wire["v"]]),
    "tags": lambda wire: TagsSet([(of, key, value) for of, key, value in wire["v"]]),
    "environment": _environment,
    "progress": lambda wire: ProgressMade(float(wire["v"])),
    "cell": lambda wire: CellRun(int(wire["cell"]), str(wire["state"]), b64decode(wire["data"])),
    "output": _output,
    "result": lambda wire: ResultTold(dict(wire["v"])),
    "done": lambda wire: AttemptDone(_usage(wire.get("usage")) or Usage()),
    "ended": _ended,
    "lost": lambda wire: AttemptLost(_end(wire), _reason(wire)),
}
