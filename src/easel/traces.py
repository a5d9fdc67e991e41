"""Traces of jobs for OpenTelemetry: what server, controller, worker and agent do for a job meets in one trace.

Ids are made from the job's own id, so nothing has to be handed from process to process: whoever touches a job knows
its trace, and a span that is told twice is one. Without `EASEL_TRACES` nothing is imported and nothing is noted.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from easel.clock import Clock
from easel.errors import Misconfigured

if TYPE_CHECKING:
    from easel.trace_export import Recorder

VARIABLE = "EASEL_TRACES"
"""Where spans go: `http://collector:4318` (OTLP over HTTP) or `file:///var/log/easel/traces.jsonl`."""
SUBMIT, LAUNCH, ATTEMPT, AGENT = "submit", "launch", "attempt", "agent"
_PARENTS = {LAUNCH: SUBMIT, ATTEMPT: LAUNCH, AGENT: ATTEMPT}

Value = str | int | float | bool


@dataclass(frozen=True, slots=True)
class JobSpan:
    """One thing that was done for a job, from when to when. `attempt` 0 is before any attempt."""

    name: str
    service: str
    trace: int
    id: int
    parent: int | None
    began: datetime
    ended: datetime
    attributes: Mapping[str, Value] = field(default_factory=dict)
    error: str | None = None


def trace_of(job: str) -> int:
    """Returns the trace of a job: 128 bits of a hash of its id."""
    return int.from_bytes(hashlib.sha256(f"trace {job}".encode()).digest()[:16]) or 1


def span_of(job: str, name: str, attempt: int = 0) -> int:
    """Returns the id of a job's span: the same in every process."""
    return int.from_bytes(hashlib.sha256(f"span {job} {name} {attempt}".encode()).digest()[:8]) or 1


def is_on() -> bool:
    return bool(os.environ.get(VARIABLE))


def check() -> None:
    """Refuses a setting that cannot work, in words."""
    target = os.environ.get(VARIABLE, "")
    if target and not target.startswith(("http://", "https://", "file:///")):
        raise Misconfigured(
            "traces go to http://collector:4318, https://… or file:///a/file: see EASEL_TRACES"
        )
    if target and importlib.util.find_spec("opentelemetry") is None:
        raise Misconfigured("traces need opentelemetry: pip install 'easel-ml[traces]'")


def record(
    name: str,
    service: str,
    job: str,
    began: datetime,
    ended: datetime,
    *,
    attempt: int = 0,
    attributes: Mapping[str, Value] | None = None,
    error: str | None = None,
    within: str | None = None,
) -> None:
    """Notes what was done for a job. `within` names the span around it, where that is not the usual one."""
    if not is_on():
        return
    around = within or _PARENTS.get(name)
    above = None if around is None else span_of(job, around, 0 if around == SUBMIT else attempt)
    known: dict[str, Value] = {"easel.job": job, **({"easel.attempt": attempt} if attempt else {})}
    told = {**known, **(attributes or {})}
    own = span_of(job, name, attempt)
    _recorder().add(JobSpan(name, service, trace_of(job), own, above, began, ended, told, error))


@dataclass(slots=True)
class Timed:
    """A span that is under way, in steps that follow each other."""

    clock: Clock
    steps: list[tuple[str, datetime]] = field(default_factory=list)
    error: str | None = None

    def step(self, name: str) -> None:
        """Ends the step before this one."""
        self.steps.append((name, self.clock.now()))


@contextmanager
def timed(name: str, service: str, job: str, attempt: int, clock: Clock) -> Iterator[Timed]:
    """Notes the time until the block is left, with its steps as spans of their own, and sends all of it."""
    began, made = clock.now(), Timed(clock)
    try:
        yield made
    finally:
        if is_on():
            ended = clock.now()
            ends = [*(at for _, at in made.steps[1:]), ended]
            for (step, at), end in zip(made.steps, ends, strict=True):
                record(step, service, job, at, end, attempt=attempt, within=name)
            record(name, service, job, began, ended, attempt=attempt, error=made.error)
            flush()


def flush() -> None:
    """Sends what waits. A collector that does not answer costs a second and nothing else."""
    if is_on():
        _recorder().flush()


_lock = threading.Lock()
_made: list[tuple[int, Recorder]] = []


def _recorder() -> Recorder:
    """The recorder of this process: one that was forked makes its own."""
    with _lock:
        if not _made or _made[0][0] != os.getpid():
            from easel.trace_export import Recorder

            _made[:] = [(os.getpid(), Recorder(os.environ[VARIABLE]))]
        return _made[0][1]
