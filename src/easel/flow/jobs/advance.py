"""Reports of executors become states, logs, metrics and outputs: a batch of jobs in one transaction.

Each report is folded through the life cycle; what it decides is written with its events by compare-and-set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from easel.declare.job import RetryRule
from easel.errors import EaselError
from easel.flow.jobs import outputs
from easel.flow.jobs.metric_tags import tag_metrics
from easel.flow.jobs.people import Owners
from easel.flow.jobs.reports import AttemptReport, happening, metric_row, signed
from easel.flow.jobs.tagging import Line, tags_of, waiting
from easel.flow.lake.tag import give_tags
from easel.flow.lake.upload import Lake
from easel.ids import JobId, ProjectId, UserId
from easel.lake.blobs.store import Incoming
from easel.records.attempt import AttemptKey, EndReason
from easel.records.environment import LockedEnvironment
from easel.records.job import ACTIVE, TERMINAL, JobState, Usage
from easel.run.entries import (
    CellRun,
    EnvironmentLocked,
    JournalEntry,
    Kept,
    LoggedLines,
    MetricPoints,
    ProgressMade,
    ResultTold,
    StateReached,
    TagsSet,
    UsageSoFar,
    following,
)
from easel.run.lifecycle import (
    Ended,
    Gone,
    Happening,
    IgnoredLate,
    KeepOutput,
    Life,
    UpstreamFailed,
    step,
    to_json,
)
from easel.run.retry import backoff_s
from easel.store import (
    environments,
    job_attempts,
    job_cells,
    job_logs,
    job_needs,
    job_series,
    job_specs,
    jobs,
    offers,
)
from easel.store.engine import NewEvent, Tx
from easel.store.job_catalogue import NewOutput, add_outputs
from easel.store.job_logs import LogChunk
from easel.store.lake import lineage
from easel.store.lake.tags import NewTag
from easel.store.stored_job import StoredJob

_IN_ORDER = 1 << 40
"""Chunks of a log are numbered by the bytes before them, beyond the entries' numbers that older releases used."""
GAVE_WAY_S = 5.0
"""Who was stopped for a newcomer begins again no sooner: its place is the newcomer's."""


@dataclass(slots=True)
class _Work:
    """One job while reports are folded into it."""

    row: StoredJob
    life: Life
    changes: dict[str, Any] = field(default_factory=dict)
    tags: list[Line] = field(default_factory=list)
    ended_at: datetime | None = None

    def now(self, column: str) -> Any:
        """The value of a column as it will be."""
        return self.changes.get(column, getattr(self.row, column))


@dataclass(frozen=True, slots=True)
class _Output:
    """An output whose attempt has not said its last word. `seen` counts the entries up to it."""

    kept: Kept | None = None
    result: Mapping[str, Any] | None = None
    seen: int = 0


@dataclass(slots=True)
class Batch:
    """What a transaction has gathered to write."""

    events: list[NewEvent] = field(default_factory=list)
    chunks: list[LogChunk] = field(default_factory=list)
    metrics: list[dict[str, Any]] = field(default_factory=list)
    cells: list[job_cells.CellRow] = field(default_factory=list)
    environments: list[LockedEnvironment] = field(default_factory=list)
    outputs: list[tuple[_Work, NewOutput]] = field(default_factory=list)
    attempts: list[job_attempts.EndedAttempt] = field(default_factory=list)
    pending: dict[AttemptKey, _Output] = field(default_factory=dict)
    over: dict[AttemptKey, bool] = field(default_factory=dict)
    """Attempts that executors may forget, and whether their jobs are over."""
    gaps: dict[AttemptKey, int] = field(default_factory=dict)
    """Attempts in whose journals an entry is missing, and how many there are before it."""


@dataclass(frozen=True, slots=True)
class Advance:
    """What follows for executors: attempts to forget, and whether their jobs are over; journals to say again."""

    over: Mapping[AttemptKey, bool] = field(default_factory=dict)
    gaps: Mapping[AttemptKey, int] = field(default_factory=dict)


def _environment(row: StoredJob, told: EnvironmentLocked, at: datetime) -> LockedEnvironment:
    return LockedEnvironment(
        project_id=row.project_id,
        asked=told.asked[:64],
        lock=told.lock[:64],
        name=told.name[:64],
        python=told.python[:40],
        packages=tuple(told.packages),
        job_id=row.id,
        made_at=at,
    )


def life_of(row: StoredJob) -> Life:
    retry = row.spec["retry"]
    return Life(
        state=JobState(row.state),
        attempt=row.attempt,
        lost=row.lost,
        failed=row.failed,
        kill_requested=row.kill_requested,
        exit_code=row.exit_code,
        end=EndReason(row.end_reason) if row.end_reason else None,
        reason=row.reason,
        usage=Usage(**row.usage) if row.usage else None,
        retry=RetryRule(**retry),
    )


def columns_of(life: Life, before: StoredJob, now: datetime) -> dict[str, Any]:
    """The columns in which the state machine's state is kept, with the times of its milestones."""
    values: dict[str, Any] = {
        "state": life.state.value,
        "attempt": life.attempt,
        "lost": life.lost,
        "failed": life.failed,
        "kill_requested": life.kill_requested,
        "exit_code": life.exit_code,
        "end_reason": life.end.value if life.end else None,
        "reason": life.reason,
        "usage": asdict(life.usage) if life.usage else None,
    }
    if life.state in TERMINAL and before.ended_at is None:
        values["ended_at"] = now
    return values


class Advancer:
    """Keeps, between batches, outputs whose last line has not come yet."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self._pending: dict[AttemptKey, _Output] = {}
        self._batches = 0

    def advance(self, told: Sequence[AttemptReport], guard: Callable[[Tx], None]) -> Advance:
        """Apply reports, each entry once and in its order; returns what executors must do about them.

        `guard` refuses a controller that was fenced off.
        """
        if not told:
            return Advance()
        kept = [entry.body for each in told for entry in each.entries if isinstance(entry.body, Kept)]
        self._batches += 1
        stage = f"jobs-{self.lake.store.rng.getrandbits(60):x}-{self._batches}"
        objects = outputs.land(self.lake, kept, stage)
        with self.lake.store.write() as tx:
            guard(tx)
            batch = _Fold(tx, objects, self._pending).run(told)
        self._pending |= batch.pending
        for key in [*batch.over, *batch.gaps]:
            self._pending.pop(key, None)
        return Advance(batch.over, batch.gaps)

    def connected(self) -> None:
        """Executors begin to say again what is not in the database: nothing else is remembered."""
        self._pending.clear()


class _Fold:
    def __init__(self, tx: Tx, objects: Sequence[Incoming], pending: Mapping[AttemptKey, _Output]) -> None:
        self.tx, self.objects, self.pending = tx, objects, pending
        self.owners = Owners(tx)
        self.batch = Batch()

    def run(self, told: Sequence[AttemptReport]) -> Batch:
        self.taken = offers.take_reports(self.tx, [each.member.report for each in told if each.member])
        rows = jobs.rows(self.tx, [each.job_id for each in told])
        works = {job_id: _Work(row, life_of(row)) for job_id, row in rows.items()}
        outputs.record_objects(self.tx, self.objects)
        for each in told:
            work = works.get(each.job_id)
            if work is None:
                self.batch.over[each.key] = True
                continue
            self._tell(work, each)
        self._make_outputs()
        self._put_tags(works)
        self._release_dependants(works)
        self._write(works)
        return self.batch

    # One report. ------------------------------------------------------------------------------------------

    def _tell(self, work: _Work, told: AttemptReport) -> None:
        if told.entries:
            self._read_journal(work, told)
        if told.gone is not None:
            end, reason = told.gone
            self._happen(work, told.key, Gone(told.attempt, reason, end), None)
        said = told.member
        if said is not None and said.report in self.taken and self._is_logged(work, told):
            for entry in said.entries:
                if isinstance(entry.body, LoggedLines):
                    self._log(work, told, entry, entry.body, signed(entry.body.data or b"", said.rank))
        if told.member_end is not None:
            last = told.member_end.entry
            what = happening(told.attempt, last.body, told.member_end.rank)
            if what is not None:
                self._happen(work, told.key, what, last.moment)

    @staticmethod
    def _is_logged(work: _Work, told: AttemptReport) -> bool:
        """Whether the job's log is that of this attempt: one that waits for its next has closed it."""
        return told.attempt == work.life.attempt and work.life.state is not JobState.QUEUED

    def _read_journal(self, work: _Work, told: AttemptReport) -> None:
        """Entries that go on where those that are known end. Where one is missing, the rest is left for later."""
        if told.attempt != work.life.attempt or work.life.state not in ACTIVE:
            for entry in told.entries:
                self._say_late(work, told, entry)
            return
        output = self._output(told.key)
        known = max(work.now("applied"), output.seen)
        entries, missing = following(told.entries, known)
        for entry in entries:
            if work.life.state in ACTIVE:
                self._note(work, told, entry)
                what = happening(told.attempt, entry.body)
                if what is not None:
                    self._happen(work, told.key, what, entry.moment)
        if missing and work.life.state in ACTIVE:
            self.batch.gaps[told.key] = work.now("applied")

    def _say_late(self, work: _Work, told: AttemptReport, entry: JournalEntry) -> None:
        what = happening(told.attempt, entry.body)
        repeated = told.attempt == work.life.attempt and entry.number < work.now("applied")
        if what is not None and not repeated:
            self._happen(work, told.key, what, entry.moment)
        elif entry.last:
            self.batch.over.setdefault(told.key, work.life.over)

    def _output(self, key: AttemptKey) -> _Output:
        return self.batch.pending.get(key) or self.pending.get(key) or _Output()

    def _note(self, work: _Work, told: AttemptReport, entry: JournalEntry) -> None:
        """What an entry says besides the state. An output counts only when its last line has come."""
        at, body = entry.moment, entry.body
        if isinstance(body, Kept | ResultTold):
            before = self._output(told.key)
            self.batch.pending[told.key] = (
                replace(before, kept=body, seen=entry.number + 1)
                if isinstance(body, Kept)
                else replace(before, result=body.value, seen=entry.number + 1)
            )
            return
        work.changes["applied"] = entry.number + 1
        work.changes["heard_at"] = at
        match body:
            case LoggedLines(data=data):
                self._log(work, told, entry, body, data or b"")
            case MetricPoints(points):
                self.batch.metrics += [metric_row(work.row, told.attempt, at, *point) for point in points]
            case ProgressMade(fraction):
                work.changes["progress"] = fraction
            case CellRun(cell, state, cell_data):
                row = job_cells.CellRow(work.row.id, told.attempt, cell, state, entry.number, at, cell_data)
                self.batch.cells.append(row)
            case EnvironmentLocked():
                self.batch.environments.append(_environment(work.row, body, at))
            case UsageSoFar(usage):
                work.life = replace(work.life, usage=usage)
            case TagsSet(tags):
                work.tags += list(tags)
            case StateReached(state):
                if work.now("held_at") is None:
                    work.changes["held_at"] = at
                if state is JobState.RUNNING:
                    work.changes["started_at"] = at

    def _log(
        self, work: _Work, told: AttemptReport, entry: JournalEntry, body: LoggedLines, data: bytes
    ) -> None:
        first, size = work.now("log_lines"), work.now("log_bytes")
        lines = data.count(b"\n")
        chunk = LogChunk(
            JobId(work.row.id),
            told.attempt,
            _IN_ORDER + size,
            first,
            lines,
            body.stream,
            entry.moment,
            data,
        )
        self.batch.chunks.append(chunk)
        work.changes |= {"log_lines": first + lines, "log_bytes": size + len(data)}

    def _happen(self, work: _Work, key: AttemptKey, what: Happening, at: datetime | None) -> None:
        """Fold it into the job's life. `at` is when, by the journal; of what no journal says nothing is known."""
        before = work.life
        after = step(before, what)
        for instruction in after.instructions:
            if isinstance(instruction, IgnoredLate):
                body = {"attempt": instruction.attempt, "what": to_json(what)}
                self._emit(work, "job.late_report", body)
                self.batch.over.setdefault(key, work.life.over)
            elif isinstance(instruction, KeepOutput):
                try:
                    self._keep(work, key)
                except EaselError as error:
                    reason = f"the output could not be stored: {error}"
                    refused = Ended(before.attempt, reason, None, final=True, end=EndReason.REFUSED)
                    self._happen(work, key, refused, at)
                    return
        work.life = after.life
        if after.life != before:
            self._emit(work, f"job.{after.life.state.value}", to_json(what))
        if before.state in ACTIVE and after.life.state not in ACTIVE:
            self._end_attempt(work, key, at)

    def _end_attempt(self, work: _Work, key: AttemptKey, at: datetime | None) -> None:
        """Write down how it ended and how long it held its device: until its end, or the last thing known of it."""
        life, held_at = work.life, work.now("held_at")
        work.ended_at = at or work.now("heard_at") or self.tx.now
        seconds = 0.0 if held_at is None else max(0.0, (work.ended_at - held_at).total_seconds())
        self.batch.over[key] = life.over
        self.batch.attempts.append(
            job_attempts.EndedAttempt(
                work.row.id,
                life.attempt,
                work.row.device,
                held_at,
                work.now("started_at") if held_at is not None else None,
                work.ended_at,
                seconds,
                life.state.value,
                life.end,
                life.reason,
                life.exit_code,
                work.now("log_lines"),
            )
        )
        if life.state is JobState.QUEUED:
            # The next attempt begins a new log and a new journal.
            wait = backoff_s(life.lost + life.failed, self.tx.rng.random())
            if work.row.give_way and life.end is EndReason.STOPPED:
                wait = max(wait, GAVE_WAY_S)
            work.changes |= {
                "applied": 0,
                "log_lines": 0,
                "log_bytes": 0,
                "progress": None,
                "held_at": None,
                "heard_at": None,
                "started_at": None,
                "not_before": self.tx.now + timedelta(seconds=wait),
            }

    def _keep(self, work: _Work, key: AttemptKey) -> None:
        """Make the output a file set. A refusal leaves nothing behind."""
        output, row = self._output(key), work.row
        kept, result = output.kept or Kept(()), output.result
        work.changes |= {"result": dict(result) if result is not None else None, "progress": 1.0}
        caller = self.owners.caller(row.project_id, row.user_id)
        if not row.spec["output_set"]:
            # A set that only this job writes cannot be refused: all of them are made together, at the end.
            outputs.record_objects(self.tx, outputs.whole_objects(kept.files))
            self.batch.outputs.append((work, outputs.new_output(row, kept.files)))
            return
        with self.tx.nested():
            made = outputs.keep_output(self.tx, caller, row.artifact_id, row.spec["output_set"], kept.files)
        work.changes |= {"output_set": str(made), "output_id": made.artifact.id}

    def _make_outputs(self) -> None:
        new = [output for _, output in self.batch.outputs]
        for (work, _), (name, number) in zip(self.batch.outputs, add_outputs(self.tx, new), strict=True):
            work.changes |= {"output_set": name, "output_id": number}

    def _put_tags(self, works: Mapping[str, _Work]) -> None:
        """Tags of an output wait, with the job, until there is one."""
        new: list[NewTag] = []
        for work in works.values():
            earlier = [(of, key, value) for of, key, value in work.row.set_tags or ()]
            output = work.changes.get("output_id")
            lines = [*earlier, *work.tags] if output is not None else work.tags
            if not lines:
                continue
            caller = self.owners.caller(work.row.project_id, work.row.user_id)
            new += tags_of(self.tx, caller, work.row, lines, output)
            if output is None and (kept := waiting(work.row, work.tags)):
                work.changes["set_tags"] = [*(work.row.set_tags or ()), *kept]
        give_tags(self.tx, new)

    def _emit(self, work: _Work, kind: str, body: Mapping[str, Any]) -> None:
        row = work.row
        self.batch.events.append(NewEvent(kind, row.id, ProjectId(row.project_id), UserId(row.user_id), body))

    # What follows for other jobs. ---------------------------------------------------------------------------

    def _release_dependants(self, works: dict[str, _Work]) -> None:
        """Steps that waited for these may start, or never will."""
        ended = [job_id for job_id, work in works.items() if work.life.over and work.row.kind != "trial"]
        while ended:
            waiting = job_needs.dependants(self.tx, ended)
            missing = {job for needed in waiting.values() for job in needed} - set(works)
            works |= {job: _Work(row, life_of(row)) for job, row in jobs.rows(self.tx, missing).items()}
            failed: list[str] = []
            for upstream in ended:
                for job in waiting.get(upstream, ()):
                    self._upstream_ended(works[upstream], works[job])
                    if works[job].life.state is JobState.FAILED:
                        failed.append(job)
            ended = failed

    def _upstream_ended(self, upstream: _Work, work: _Work) -> None:
        if upstream.life.state is not JobState.FINISHED:
            what = f"step {upstream.row.step!r}" if upstream.row.step else f"job {upstream.row.id}"
            reason = f"{what}, which it needs, ended {upstream.life.state.value}"
            after = step(work.life, UpstreamFailed(reason))
            if after.life != work.life:
                work.life = after.life
                self._emit(work, "job.failed", to_json(UpstreamFailed(reason)))
            return
        left = work.changes.get("blocked", work.row.blocked) - 1
        work.changes["blocked"] = left
        if work.row.spec["input"] == f"step:{upstream.row.step}":
            output, artifact = upstream.changes["output_set"], upstream.changes["output_id"]
            work.changes |= {"input_set": output, "input_id": artifact}
            lineage.add_reads(self.tx, work.row.artifact_id, [artifact])
        if left == 0:
            source = work.changes.get("input_set", work.row.input_set)
            spec = job_specs.SPEC.validate_python(work.row.spec)
            work.changes["signature"] = job_specs.signature(spec, work.row.code_set, source)

    # Writing. -----------------------------------------------------------------------------------------------

    def _write(self, works: Mapping[str, _Work]) -> None:
        changed = [
            (work.row, {**columns_of(work.life, work.row, work.ended_at or self.tx.now), **work.changes})
            for work in works.values()
            if work.changes or work.life != life_of(work.row)
        ]
        jobs.change(self.tx, changed)
        job_attempts.add(self.tx, self.batch.attempts)
        job_logs.add_chunks(self.tx, self.batch.chunks)
        job_series.add_metrics(self.tx, self.batch.metrics)
        job_cells.put(self.tx, self.batch.cells)
        environments.keep(self.tx, self.batch.environments)
        over = [
            w for w in works.values() if w.life.state in TERMINAL and life_of(w.row).state not in TERMINAL
        ]
        tag_metrics(self.tx, [w.row for w in over if w.row.kind != "trial"])
        self.tx.emit_all(self.batch.events)
