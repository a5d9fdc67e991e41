"""The life of one job as a pure state machine: what happened goes in, what to do comes out.

queued → launching → downloading → running → uploading → finished | failed | killed (ACAI, figure 3).

An attempt is one launch; its number grows with each launch and is carried by everything that the attempt
reports, so that a report of an earlier attempt is recognised and changes nothing. Terminal states absorb.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from easel.declare.job import RetryRule
from easel.records.attempt import EndReason
from easel.records.job import ACTIVE, TERMINAL, JobState, Usage

_ORDER = {
    state: rank
    for rank, state in enumerate(
        (JobState.LAUNCHING, JobState.DOWNLOADING, JobState.RUNNING, JobState.UPLOADING), start=1
    )
}


@dataclass(frozen=True, slots=True)
class Life:
    """Where a job stands. `lost` and `failed` count the attempts that ended so and were repeated."""

    state: JobState = JobState.QUEUED
    attempt: int = 0
    lost: int = 0
    failed: int = 0
    kill_requested: bool = False
    exit_code: int | None = None
    end: EndReason | None = None
    reason: str | None = None
    usage: Usage | None = None
    retry: RetryRule = field(default_factory=RetryRule)

    @property
    def over(self) -> bool:
        return self.state in TERMINAL


# What happens to a job. ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Dequeued:
    """The queue let it through."""


@dataclass(frozen=True, slots=True)
class Reached:
    """The agent got as far as `state`: downloading, running or uploading."""

    attempt: int
    state: JobState
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class OutputReady:
    """The user's code ended well and every byte of its output is in the blob store."""

    attempt: int
    usage: Usage


@dataclass(frozen=True, slots=True)
class Ended:
    """The attempt failed: exit code, a limit, a missing program. `final` when trying again cannot help."""

    attempt: int
    reason: str
    exit_code: int | None = None
    usage: Usage | None = None
    final: bool = False
    end: EndReason = EndReason.OTHER


@dataclass(frozen=True, slots=True)
class Gone:
    """No process of the attempt is left and it never reported an end: the platform lost it."""

    attempt: int
    reason: str
    end: EndReason = EndReason.OTHER


@dataclass(frozen=True, slots=True)
class KillRequested:
    reason: str
    end: EndReason = EndReason.KILLED


@dataclass(frozen=True, slots=True)
class UpstreamFailed:
    """A step that this job needs will never have an output."""

    reason: str


Happening = Dequeued | Reached | OutputReady | Ended | Gone | KillRequested | UpstreamFailed

# What to do about it. -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StartAttempt:
    attempt: int


@dataclass(frozen=True, slots=True)
class StopAttempt:
    """End every process of the attempt; then say Gone."""

    attempt: int


@dataclass(frozen=True, slots=True)
class KeepOutput:
    """Make the output a file set, in the transaction that says finished."""

    attempt: int


@dataclass(frozen=True, slots=True)
class IgnoredLate:
    """Nothing to do, but write down that it came."""

    attempt: int
    what: str


Instruction = StartAttempt | StopAttempt | KeepOutput | IgnoredLate


@dataclass(frozen=True, slots=True)
class Transition:
    life: Life
    instructions: tuple[Instruction, ...] = ()


def step(life: Life, what: Happening) -> Transition:
    """The only gate through which a job changes."""
    match what:
        case Dequeued():
            if life.state is not JobState.QUEUED:
                return Transition(life)
            launched = replace(life, state=JobState.LAUNCHING, attempt=life.attempt + 1, usage=None)
            return Transition(launched, (StartAttempt(launched.attempt),))
        case KillRequested(reason, end):
            if life.over or life.kill_requested:
                return Transition(life)
            asked = replace(life, kill_requested=True, end=end, reason=reason)
            if life.state is JobState.QUEUED:
                return Transition(replace(asked, state=JobState.KILLED))
            return Transition(asked, (StopAttempt(life.attempt),))
        case UpstreamFailed(reason):
            if life.state is not JobState.QUEUED:
                return Transition(life)
            return Transition(replace(life, state=JobState.FAILED, end=EndReason.UPSTREAM, reason=reason))
        case _:
            if life.state not in ACTIVE or what.attempt != life.attempt:
                return Transition(life, (IgnoredLate(what.attempt, type(what).__name__),))
            return _of_attempt(life, what)


def _of_attempt(life: Life, what: Reached | OutputReady | Ended | Gone) -> Transition:
    """`what` belongs to the current attempt of an active job."""
    match what:
        case Reached(_, state, usage):
            if _ORDER.get(state, 0) <= _ORDER[life.state]:
                return Transition(life)
            return Transition(replace(life, state=state, usage=usage or life.usage))
        case _ if life.kill_requested:
            code = what.exit_code if isinstance(what, Ended) else None
            usage = life.usage if isinstance(what, Gone) else what.usage or life.usage
            return Transition(replace(life, state=JobState.KILLED, exit_code=code, usage=usage))
        case Ended(_, reason) | Gone(_, reason) if what.end is EndReason.STOPPED:
            # Nobody asked for the job's end: the platform stopped this attempt for its own sake, to empty a device.
            return Transition(replace(life, state=JobState.QUEUED, end=what.end, reason=reason))
        case OutputReady(attempt, usage):
            done = replace(life, state=JobState.FINISHED, exit_code=0, end=None, reason=None, usage=usage)
            return Transition(done, (KeepOutput(attempt),))
        case Ended(_, reason, exit_code, usage, final, end):
            ended = replace(life, exit_code=exit_code, end=end, reason=reason, usage=usage or life.usage)
            if not final and life.failed < life.retry.failed:
                return Transition(replace(ended, state=JobState.QUEUED, failed=life.failed + 1))
            return Transition(replace(ended, state=JobState.FAILED))
        case Gone(_, reason, end):
            gone = replace(life, end=end, reason=reason)
            if life.lost < life.retry.lost:
                return Transition(replace(gone, state=JobState.QUEUED, lost=life.lost + 1))
            return Transition(replace(gone, state=JobState.FAILED))


def replay(retry: RetryRule, history: list[Happening]) -> Life:
    """The state that a history leads to."""
    life = Life(retry=retry)
    for what in history:
        life = step(life, what).life
    return life


# Histories are kept as JSON in the event table. -----------------------------------------------------------

_KINDS: dict[str, type[Happening]] = {
    kind.__name__: kind
    for kind in (Dequeued, Reached, OutputReady, Ended, Gone, KillRequested, UpstreamFailed)
}


def to_json(what: Happening) -> dict[str, Any]:
    return {"what": type(what).__name__, **asdict(what)}


def from_json(body: dict[str, Any]) -> Happening:
    fields = {key: value for key, value in body.items() if key != "what"}
    if isinstance(fields.get("usage"), dict):
        fields["usage"] = Usage(**fields["usage"])
    if "state" in fields:
        fields["state"] = JobState(fields["state"])
    if "end" in fields:
        fields["end"] = EndReason(fields["end"])
    return _KINDS[body["what"]](**fields)
