"""Queries on jobs: adding, finding, listing, and changing them by compare-and-set."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Select, Text, bindparam, cast, func, insert, select, update

from easel.declare.job import JobSpec
from easel.declare.page import PageRequest
from easel.errors import Conflict, NotFound
from easel.ids import LEAST_END, JobId, ProjectId, UserId, id_end
from easel.records.attempt import AttemptKey, EndReason
from easel.records.job import ACTIVE, Job, JobOutcome, JobState, Usage
from easel.store.engine import AnyRow, Tx
from easel.store.paging import Collection, Page, fetch
from easel.store.schema.identity import users
from easel.store.schema.jobs import IS_ACTIVE, IS_QUEUED, job_needs, jobs
from easel.store.stored_job import StoredJob
from easel.store.upsert import chunks, in_slots, slot_values, slots_for

SPEC: TypeAdapter[JobSpec] = TypeAdapter(JobSpec)

JOBS = Collection(
    {
        "seq": jobs.c.seq,
        "id": jobs.c.id,
        "name": jobs.c.name,
        "state": jobs.c.state,
        "kind": jobs.c.kind,
        "user_id": jobs.c.user_id,
        "submitted_at": jobs.c.submitted_at,
    },
    "seq",
    "-seq",
)
JOB_COLUMNS = (
    jobs.c.seq,
    jobs.c.id,
    jobs.c.project_id,
    jobs.c.user_id,
    jobs.c.name,
    jobs.c.kind,
    jobs.c.spec,
    jobs.c.state,
    jobs.c.attempt,
    jobs.c.kill_requested,
    jobs.c.exit_code,
    jobs.c.end_reason,
    jobs.c.reason,
    jobs.c.result,
    jobs.c.usage,
    jobs.c.progress,
    jobs.c.code_set,
    jobs.c.input_set,
    jobs.c.output_set,
    jobs.c.parent_id,
    jobs.c.pipeline_id,
    jobs.c.step,
    jobs.c.device,
    jobs.c.submitted_at,
    jobs.c.started_at,
    jobs.c.ended_at,
)


@dataclass(frozen=True, slots=True)
class NewJob:
    """What is known of a job when it is submitted."""

    id: JobId
    project_id: ProjectId
    user_id: UserId
    spec: JobSpec
    blocked: int = 0
    artifact_id: int | None = None
    code_set: str | None = None
    code_id: int | None = None
    input_set: str | None = None
    input_id: int | None = None
    parent_id: JobId | None = None
    pipeline_id: str | None = None
    step: str | None = None


def add(tx: Tx, new: Sequence[NewJob]) -> list[Job]:
    """Queue them; returns them as `find` would."""
    rows = [
        {
            "id": job.id,
            "project_id": job.project_id,
            "user_id": job.user_id,
            "name": job.spec.name,
            "kind": job.spec.run.kind,
            "spec": SPEC.dump_python(job.spec, mode="json"),
            "state": JobState.QUEUED.value,
            "revision": 0,
            "rank": 0,
            "blocked": job.blocked,
            "attempt": 0,
            "lost": 0,
            "failed": 0,
            "applied": 0,
            "kill_requested": False,
            "log_lines": 0,
            "log_bytes": 0,
            "artifact_id": job.artifact_id,
            "code_set": job.code_set,
            "input_set": job.input_set,
            "input_id": job.input_id,
            "parent_id": job.parent_id,
            "pipeline_id": job.pipeline_id,
            "step": job.step,
            "signature": None if job.blocked else signature(job.spec, job.code_set, job.input_set),
            "submitted_at": tx.now,
        }
        for job in new
    ]
    tx.execute(_ADD, rows)
    return [_queued(job, tx.now) for job in new]


_ADD = insert(jobs)


def _queued(new: NewJob, now: datetime) -> Job:
    return Job(
        id=new.id,
        project_id=new.project_id,
        user_id=new.user_id,
        spec=new.spec,
        state=JobState.QUEUED,
        attempt=0,
        kill_requested=False,
        exit_code=None,
        end_reason=None,
        reason=None,
        result=None,
        usage=None,
        progress=None,
        code_set=new.code_set,
        input_set=new.input_set,
        output_set=None,
        parent_id=new.parent_id,
        pipeline_id=new.pipeline_id,
        device=None,
        submitted_at=now,
        started_at=None,
        ended_at=None,
    )


def signature(spec: JobSpec, code_set: str | None, input_set: str | None) -> str:
    """Names the work: what runs, in which environment, on which versions. Not on how large a machine."""
    body = SPEC.dump_python(spec, mode="json")
    environment = {k: v for k, v in body["environment"].items() if k != "requirements" or v is not None}
    work = [body["run"], environment, body["output_folder"], code_set, input_set]
    return hashlib.sha256(json.dumps(work, sort_keys=True).encode()).hexdigest()


def same_work(tx: Tx, project_id: ProjectId, work: str, limit: int = 5) -> list[Job]:
    """Finished jobs with this signature, newest first."""
    query = select(*JOB_COLUMNS).where(
        jobs.c.project_id == project_id, jobs.c.signature == work, jobs.c.state == JobState.FINISHED.value
    )
    return [job_of(row) for row in tx.execute(query.order_by(jobs.c.seq.desc()).limit(limit))]


class KnownSpecs:
    """Specs that were read lately: checking one takes longer than all else about a job, and it hardly ever changes."""

    most, largest = 2000, 2000
    """How many are kept, and of how many characters at most."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Any, JobSpec]] = {}
        self._known_texts: dict[str, tuple[str, JobSpec]] = {}

    def of(self, job_id: str, stored: Any) -> JobSpec:
        """Returns the spec that is stored so. What is known of a job counts only where it was stored as it is now."""
        known = self._known.get(job_id)
        if known is not None and known[0] == stored:
            return known[1]
        spec = SPEC.validate_python(stored)
        if len(json.dumps(stored)) <= self.largest:
            self._keep(self._known, job_id, (stored, spec))
        return spec

    def of_text(self, job_id: str, text: str) -> JobSpec:
        """Returns the same for the text that is stored: comparing that is quicker than reading it."""
        known = self._known_texts.get(job_id)
        if known is not None and known[0] == text:
            return known[1]
        spec = self.of(job_id, json.loads(text))
        if len(text) <= self.largest:
            self._keep(self._known_texts, job_id, (text, spec))
        return spec

    def _keep(self, known: dict[str, tuple[Any, JobSpec]], job_id: str, what: tuple[Any, JobSpec]) -> None:
        if len(known) >= self.most:
            known.clear()
        known[job_id] = what


_SPECS = KnownSpecs()


def job_of(row: AnyRow | StoredJob, spec: JobSpec | None = None) -> Job:
    """The job that a row is; `spec` where the row has it not."""
    return Job(
        id=JobId(row.id),
        project_id=ProjectId(row.project_id),
        user_id=UserId(row.user_id),
        spec=_SPECS.of(row.id, row.spec) if spec is None else spec,
        state=JobState(row.state),
        attempt=row.attempt,
        kill_requested=row.kill_requested,
        exit_code=row.exit_code,
        end_reason=EndReason(row.end_reason) if row.end_reason else None,
        reason=row.reason,
        result=row.result,
        usage=Usage(**row.usage) if row.usage else None,
        progress=row.progress,
        code_set=row.code_set,
        input_set=row.input_set,
        output_set=row.output_set,
        parent_id=row.parent_id,
        pipeline_id=row.pipeline_id,
        device=row.device,
        submitted_at=row.submitted_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
    )


# Built once: building a statement costs several times as much as running it.
_FIND = select(*JOB_COLUMNS).where(
    jobs.c.project_id == bindparam("of_project"), jobs.c.id == bindparam("of_job")
)


def find(tx: Tx, project_id: ProjectId, job_id: str) -> Job:
    """Returns the project's job of this id, or the only one whose id ends so (ids differ in their ends)."""
    row = tx.execute(_FIND, {"of_project": project_id, "of_job": job_id}).one_or_none()
    if row is None and (end := id_end(job_id)) is not None:
        ends = select(*JOB_COLUMNS).where(
            jobs.c.project_id == project_id, jobs.c.id.endswith(end, autoescape=True)
        )
        found = tx.execute(ends.order_by(jobs.c.seq.desc()).limit(3)).all()
        if len(found) > 1:
            named = ", ".join(each.id for each in found[:2])
            raise Conflict(f"the ids of several jobs end in {end}, {named} among them: write more of it")
        row = found[0] if found else None
    if row is None:
        raise NotFound(
            f"there is no job {job_id[:60]!r} in this project: `easel jobs ls` shows those that are"
            + (
                f" (of the end of an id write {LEAST_END} characters at least)"
                if len(job_id) < LEAST_END
                else ""
            )
        )
    return job_of(row)


_NEEDED = (
    select(job_needs.c.job_id, jobs.c.id)
    .join(job_needs, job_needs.c.needs == jobs.c.id)
    .where(job_needs.c.job_id.in_(bindparam("of_jobs", expanding=True)), jobs.c.ended_at.is_(None))
    .order_by(jobs.c.seq)
)


def waits_for(tx: Tx, job_ids: Iterable[JobId]) -> dict[JobId, list[str]]:
    """The jobs that must end before each of these may start, those that have not."""
    found: dict[JobId, list[str]] = {}
    for job_id, needed in tx.execute(_NEEDED, {"of_jobs": list(job_ids)}):
        found.setdefault(job_id, []).append(needed)
    return found


def find_many(tx: Tx, project_id: ProjectId, ids: Sequence[str]) -> list[Job]:
    """Returns the jobs in the order of `ids`."""
    found: dict[str, Job] = {}
    for start in range(0, len(ids), 500):
        some = ids[start : start + 500]
        query = select(*JOB_COLUMNS).where(jobs.c.project_id == project_id, jobs.c.id.in_(some))
        found.update((row.id, job_of(row)) for row in tx.execute(query))
    return [found[each] for each in ids]


_SPEC_TEXT = "spec_text"
_LISTED = (
    select(
        *(column for column in JOB_COLUMNS if column is not jobs.c.spec),
        cast(jobs.c.spec, Text).label(_SPEC_TEXT),
        users.c.name.label("owner"),
    )
    .outerjoin(users, users.c.id == jobs.c.user_id)
    .where(jobs.c.project_id == bindparam("of_project"))
)
"""Specs as text: one that is known need not be read anew."""


def list_jobs(tx: Tx, project_id: ProjectId, request: PageRequest) -> Page[tuple[Job, str]]:
    """Returns jobs, each with its owner's name."""
    found = fetch(tx, _LISTED, JOBS, request, {"of_project": project_id})
    return found.map(
        lambda row: (job_of(row, _SPECS.of_text(row.id, row.spec_text)), row.owner or row.user_id)
    )


def rows(tx: Tx, ids: Iterable[str], *, lock: bool = True) -> dict[str, StoredJob]:
    """Returns everything about these jobs, for whoever will change them in this transaction.

    Who only looks says that there is nothing to `lock`: else nobody could change them meanwhile.
    """
    wanted = sorted(set(ids))
    found: dict[str, StoredJob] = {}
    for start in range(0, len(wanted), 500):
        query = select(jobs).where(jobs.c.id.in_(wanted[start : start + 500]))
        if lock:
            # Everybody locks jobs in the order of their ids: two who want the same ones never wait for each other.
            query = query.order_by(jobs.c.id).with_for_update()
        found.update((row.id, StoredJob._make(row)) for row in tx.execute(query))
    return found


@cache
def _placed(slots: int) -> Select[*tuple[Any, ...]]:
    query = select(jobs.c.id, jobs.c.state, jobs.c.device, jobs.c.give_way)
    return query.where(in_slots(jobs.c.id, "id", slots))


OUTCOME = (
    jobs.c.user_id,
    jobs.c.spec,
    jobs.c.state,
    jobs.c.end_reason,
    jobs.c.result,
    jobs.c.output_set,
    jobs.c.usage,
    jobs.c.started_at,
    jobs.c.ended_at,
)
"""The columns of which `outcome_of` makes what came of a job."""


@cache
def _outcomes(slots: int) -> Select[*tuple[Any, ...]]:
    return select(jobs.c.id, *OUTCOME).where(in_slots(jobs.c.id, "id", slots))


@dataclass(frozen=True, slots=True)
class JobPlacement:
    """The state of a job, its device, and whether it was asked to stop at its next checkpoint and has not."""

    state: JobState
    device: str | None = None
    gives_way: bool = False


def placements(tx: Tx, ids: Sequence[JobId]) -> dict[JobId, JobPlacement]:
    """Returns where those of these jobs are that exist."""
    found = {}
    for some in chunks(ids):
        slots = slots_for(some)
        for row in tx.execute(_placed(slots), slot_values("id", some, slots)):
            state = JobState(row.state)
            found[JobId(row.id)] = JobPlacement(state, row.device, bool(row.give_way) and state in ACTIVE)
    return found


def outcomes(tx: Tx, ids: Sequence[JobId]) -> dict[JobId, JobOutcome]:
    """Returns what came of those of these jobs that exist."""
    found: dict[JobId, JobOutcome] = {}
    for some in chunks(ids):
        slots = slots_for(some)
        rows = tx.execute(_outcomes(slots), slot_values("id", some, slots))
        found |= {JobId(row[0]): outcome_of(row[1:]) for row in rows}
    return found


def outcome_of(values: Sequence[Any]) -> JobOutcome:
    """Returns what came of a job, from its values of `OUTCOME`."""
    user_id, spec, state, end_reason, result, output_set, usage, started_at, ended_at = values
    return JobOutcome(
        user_id,
        spec,
        JobState(state),
        None if end_reason is None else EndReason(end_reason),
        result,
        output_set,
        (usage or {}).get("peak_memory_mb"),
        started_at,
        ended_at,
    )


def active(tx: Tx) -> list[StoredJob]:
    """Returns the jobs that an executor should have, in the order in which they came."""
    return sorted(StoredJob._make(row) for row in tx.execute(select(jobs).where(IS_ACTIVE)))


def project_of(tx: Tx, job_ids: Sequence[str]) -> dict[str, str]:
    """The project of each of these jobs."""
    found: dict[str, str] = {}
    for some in chunks(list(job_ids)):
        query = select(jobs.c.id, jobs.c.project_id).where(jobs.c.id.in_(some))
        found |= {row.id: row.project_id for row in tx.execute(query)}
    return found


def names_of(tx: Tx, job_ids: Sequence[str]) -> dict[str, str]:
    """Returns the names of these jobs, by id; of a job that is no longer there, none."""
    wanted = sorted(set(job_ids))
    query = select(jobs.c.id, jobs.c.name).where(jobs.c.id.in_(wanted))
    return {row.id: row.name for row in tx.execute(query)} if wanted else {}


def to_kill(tx: Tx) -> list[str]:
    """Keys of attempts whose end was asked for."""
    query = select(jobs.c.id, jobs.c.attempt).where(IS_ACTIVE, jobs.c.kill_requested.is_(True))
    return [str(AttemptKey(row.id, row.attempt)) for row in tx.execute(query)]


def to_give_way(tx: Tx) -> dict[str, bool]:
    """Keys of attempts that were asked to give way, and whether each does so by itself at its next checkpoint: trials
    do, and commands are stopped."""
    query = select(jobs.c.id, jobs.c.attempt, jobs.c.kind).where(IS_ACTIVE, jobs.c.give_way.is_(True))
    return {str(AttemptKey(row.id, row.attempt)): row.kind == "trial" for row in tx.execute(query)}


def wants_of_queued(tx: Tx, job_ids: Sequence[JobId]) -> dict[JobId, dict[str, str]]:
    """The labels that those of these jobs which wait in the queue want of their device."""
    found: dict[JobId, dict[str, str]] = {}
    for some in chunks(job_ids):
        query = select(jobs.c.id, jobs.c.spec).where(jobs.c.id.in_(some), IS_QUEUED)
        found |= {JobId(row.id): dict(row.spec.get("wants") or {}) for row in tx.execute(query)}
    return found


def put_off(tx: Tx, job_ids: Sequence[JobId]) -> frozenset[JobId]:
    """Returns those of these jobs that wait in the queue and may not begin yet."""
    found: set[JobId] = set()
    for some in chunks(job_ids):
        later = (jobs.c.id.in_(some), IS_QUEUED, jobs.c.not_before > tx.now)
        found |= {JobId(row.id) for row in tx.execute(select(jobs.c.id).where(*later))}
    return frozenset(found)


def want_nothing(tx: Tx, job_ids: Sequence[JobId]) -> None:
    """Lets these, as far as they wait, run on any device."""
    for job_id in job_ids:
        here = (jobs.c.id == job_id, IS_QUEUED)
        row = tx.execute(select(jobs.c.spec).where(*here)).first()
        if row is not None:
            tx.execute(update(jobs).where(*here).values(spec={**row.spec, "wants": {}}))


def ask_to_give_way(tx: Tx, job_ids: Sequence[JobId]) -> list[JobId]:
    """Asks these; returns those that run and had not been asked before."""
    asked = []
    for job_id in job_ids:
        here = (jobs.c.id == job_id, IS_ACTIVE, jobs.c.give_way.is_(False))
        if tx.execute(update(jobs).where(*here).values(give_way=True)).rowcount:
            asked.append(job_id)
    return asked


def change(tx: Tx, changes: Sequence[tuple[StoredJob, Mapping[str, Any]]]) -> None:
    """Compare-and-set: each job must still have the revision that was seen. All or an error."""
    by_columns: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for seen, values in changes:
        row = {f"new_{name}": value for name, value in values.items()}
        by_columns.setdefault(tuple(sorted(values)), []).append(
            {**row, "seen_id": seen.id, "seen_revision": seen.revision, "new_revision": seen.revision + 1}
        )
    for columns, parameters in by_columns.items():
        statement = (
            update(jobs)
            .where(jobs.c.id == bindparam("seen_id"), jobs.c.revision == bindparam("seen_revision"))
            .values({name: bindparam(f"new_{name}") for name in (*columns, "revision")})
        )
        changed = tx.execute(statement, parameters).rowcount
        if changed not in (len(parameters), -1):
            raise Conflict("a job was changed by somebody else meanwhile: look at it again")


def add_needs(tx: Tx, pairs: Sequence[tuple[JobId, JobId]]) -> None:
    """(job, what it needs)."""
    if pairs:
        tx.execute(insert(job_needs), [{"job_id": job, "needs": needs} for job, needs in pairs])


def dependants(tx: Tx, ids: Sequence[str]) -> dict[str, list[str]]:
    """Which jobs need each of these."""
    found: dict[str, list[str]] = {}
    for start in range(0, len(ids), 500):
        query = select(job_needs).where(job_needs.c.needs.in_(ids[start : start + 500]))
        for row in tx.execute(query):
            found.setdefault(row.needs, []).append(row.job_id)
    return found


_NEWEST = select(func.coalesce(func.max(jobs.c.seq), 0))


def ever(tx: Tx) -> int:
    """Returns at least as many as all jobs that there ever were, in all projects."""
    return int(tx.execute(_NEWEST).scalar_one())


def count_by_state(tx: Tx, project_id: ProjectId) -> dict[str, int]:
    query = select(jobs.c.state, func.count()).where(jobs.c.project_id == project_id).group_by(jobs.c.state)
    return {str(state): int(count) for state, count in tx.execute(query)}
