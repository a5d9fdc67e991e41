"""Reports of executors become states, logs, metrics and outputs: a batch of jobs in one transaction.

Each report is folded through the life cycle; what it decides is written with its events by compare-and-set.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from easel.declare.job import RetryRule
from easel.errors import EaselError
from easel.flow.jobs import outputs
from easel.flow.jobs.people import Owners
from easel.flow.jobs.reports import Told, happening, metric_row, signed
from easel.flow.jobs.tagging import Line, tags_of, waiting
from easel.flow.lake.tag import give_tags
from easel.flow.lake.upload import Lake
from easel.ids import JobId, ProjectId, UserId
from easel.lake.blobs.store import Incoming
from easel.records.job import TERMINAL, JobState, Usage
from easel.run.depot import Kept, read_output
from easel.run.journal import Entry
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
from easel.store import job_logs, job_series, jobs, pool
from easel.store.engine import AnyRow, NewEvent, Tx
from easel.store.job_catalogue import NewOutput, add_outputs
from easel.store.job_logs import LogChunk
from easel.store.lake import lineage
from easel.store.lake.tags import NewTag

_IN_ORDER = 1 << 40
"""Chunks of a log are numbered by the bytes before them, beyond the entries' numbers that older releases used."""


@dataclass(slots=True)
class _Work:
    """One job while reports are folded into it."""

    row: AnyRow
    life: Life
    changes: dict[str, Any] = field(default_factory=dict)
    tags: list[Line] = field(default_factory=list)


@dataclass(slots=True)
class Batch:
    """What a transaction has gathered to write."""

    events: list[NewEvent] = field(default_factory=list)
    chunks: list[LogChunk] = field(default_factory=list)
    metrics: list[dict[str, Any]] = field(default_factory=list)
    outputs: list[tuple[_Work, NewOutput]] = field(default_factory=list)
    over: dict[str, bool] = field(default_factory=dict)
    """Keys that executors may forget, and whether their jobs are over."""


def life_of(row: AnyRow) -> Life:
    retry = row.spec["retry"]
    return Life(
        state=JobState(row.state),
        attempt=row.attempt,
        lost=row.lost,
        failed=row.failed,
        kill_requested=row.kill_requested,
        exit_code=row.exit_code,
        reason=row.reason,
        usage=Usage(**row.usage) if row.usage else None,
        retry=RetryRule(**retry),
    )


def columns_of(life: Life, before: AnyRow, now: datetime) -> dict[str, Any]:
    """The columns in which the state machine's state is kept, with the times of its milestones."""
    values: dict[str, Any] = {
        "state": life.state.value,
        "attempt": life.attempt,
        "lost": life.lost,
        "failed": life.failed,
        "kill_requested": life.kill_requested,
        "exit_code": life.exit_code,
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
        self._pending: dict[str, tuple[Kept, Mapping[str, Any] | None]] = {}
        self._batches = 0

    def advance(self, told: Sequence[Told], guard: Callable[[Tx], None]) -> dict[str, bool]:
        """Apply reports; returns the keys that may be forgotten, and whether their jobs are over.

        `guard` refuses a controller that was fenced off.
        """
        if not told:
            return {}
        ready = [self._output(each) for each in told]
        self._batches += 1
        stage = f"jobs-{self.lake.store.rng.getrandbits(60):x}-{self._batches}"
        objects = outputs.land(self.lake, [kept for kept in ready if kept], stage)
        with self.lake.store.write() as tx:
            guard(tx)
            batch = _Fold(tx, objects, self._pending).run(told)
        for key in batch.over:
            self._pending.pop(key, None)
        return batch.over

    def _output(self, told: Told) -> Kept | None:
        kept, result = self._pending.get(told.key, (None, None))
        for entry in told.entries:
            if entry["k"] == "output":
                kept = read_output(entry)
            elif entry["k"] == "result":
                result = entry["v"]
        if kept is not None:
            self._pending[told.key] = (kept, result)
        return kept


class _Fold:
    def __init__(
        self,
        tx: Tx,
        objects: Sequence[Incoming],
        pending: Mapping[str, tuple[Kept, Mapping[str, Any] | None]],
    ) -> None:
        self.tx, self.objects, self.pending = tx, objects, pending
        self.owners = Owners(tx)
        self.batch = Batch()

    def run(self, told: Sequence[Told]) -> Batch:
        rows = jobs.rows(self.tx, [each.job_id for each in told])
        works = {job_id: _Work(row, life_of(row)) for job_id, row in rows.items()}
        outputs.record_objects(self.tx, self.objects)
        self.taken = pool.take_reports(self.tx, [each.member.report for each in told if each.member])
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

    def _tell(self, work: _Work, told: Told) -> None:
        for entry in told.entries:
            current = told.attempt == work.life.attempt
            applied = work.changes.get("applied", work.row.applied)
            if current and entry["n"] < applied:
                continue
            if current:
                self._note(work, told, entry)
            what = happening(told.attempt, entry)
            if what is not None:
                self._happen(work, told.key, what)
        if told.gone is not None:
            self._happen(work, told.key, Gone(told.attempt, told.gone))
        said = told.member
        if said is not None and said.report in self.taken and told.attempt == work.life.attempt:
            for entry in said.entries:
                at = datetime.fromtimestamp(entry["at"], UTC)
                self._log(work, told, entry, at, signed(base64.b64decode(entry["data"]), said.rank))

    def _note(self, work: _Work, told: Told, entry: Entry) -> None:
        """What an entry says besides the state. Not before an output has all of its lines."""
        held = entry["k"] in ("output", "result")
        if not held:
            work.changes["applied"] = entry["n"] + 1
        kind, at = entry["k"], datetime.fromtimestamp(entry["at"], UTC)
        if kind == "log":
            self._log(work, told, entry, at, base64.b64decode(entry["data"]))
        elif kind == "metrics":
            self.batch.metrics += [metric_row(work.row.id, told.attempt, at, *point) for point in entry["v"]]
        elif kind == "progress":
            work.changes["progress"] = entry["v"]
        elif kind == "usage":
            work.life = replace(work.life, usage=Usage(**entry["v"]))
        elif kind == "tags":
            work.tags += [(of, key, value) for of, key, value in entry["v"]]
        elif kind == "reached" and entry["state"] == JobState.RUNNING.value:
            work.changes["started_at"] = at

    def _log(self, work: _Work, told: Told, entry: Entry, at: datetime, data: bytes) -> None:
        first = work.changes.get("log_lines", work.row.log_lines)
        size = work.changes.get("log_bytes", work.row.log_bytes)
        lines = data.count(b"\n")
        chunk = LogChunk(
            JobId(work.row.id),
            told.attempt,
            _IN_ORDER + size,
            first,
            lines,
            entry["f"],
            at,
            data,
        )
        self.batch.chunks.append(chunk)
        work.changes |= {"log_lines": first + lines, "log_bytes": size + len(data)}

    def _happen(self, work: _Work, key: str, what: Happening) -> None:
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
                    refused = Ended(
                        before.attempt, f"the output could not be stored: {error}", None, final=True
                    )
                    self._happen(work, key, refused)
                    return
        work.life = after.life
        if after.life != before:
            self._emit(work, f"job.{after.life.state.value}", to_json(what))
        if after.life.state in TERMINAL or after.life.state is JobState.QUEUED:
            self.batch.over[key] = after.life.over
            if after.life.state is JobState.QUEUED:
                # The next attempt begins a new log and a new journal.
                work.changes |= {"applied": 0, "log_lines": 0, "log_bytes": 0, "progress": None}

    def _keep(self, work: _Work, key: str) -> None:
        """Make the output a file set. A refusal leaves nothing behind."""
        kept, result = self.pending[key]
        row = work.row
        work.changes |= {"result": dict(result) if result is not None else None, "progress": 1.0}
        caller = self.owners.caller(row.project_id, row.user_id)
        if not row.spec["output_set"]:
            # A set that only this job writes cannot be refused: all of them are made together, at the end.
            outputs.record_objects(self.tx, outputs.whole_objects(kept.files))
            self.batch.outputs.append((work, outputs.new_output(row, kept.files)))
            return
        with self.tx.conn.begin_nested():
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
        ended = [job_id for job_id, work in works.items() if work.life.over and work.row.pipeline_id]
        while ended:
            waiting = jobs.dependants(self.tx, ended)
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
            reason = f"step {upstream.row.step!r}, which it needs, ended {upstream.life.state.value}"
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
            spec = jobs.SPEC.validate_python(work.row.spec)
            work.changes["signature"] = jobs.signature(spec, work.row.code_set, source)

    # Writing. -----------------------------------------------------------------------------------------------

    def _write(self, works: Mapping[str, _Work]) -> None:
        changed = [
            (work.row, {**columns_of(work.life, work.row, self.tx.now), **work.changes})
            for work in works.values()
            if work.changes or work.life != life_of(work.row)
        ]
        jobs.change(self.tx, changed)
        job_logs.add_chunks(self.tx, self.batch.chunks)
        job_series.add_metrics(self.tx, self.batch.metrics)
        self.tx.emit_all(self.batch.events)
