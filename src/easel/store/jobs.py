"""Queries on jobs: adding, finding, listing, and changing them by compare-and-set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Text, bindparam, cast, func, insert, not_, select, update

from easel.declare.job import JobSpec
from easel.declare.page import PageRequest
from easel.errors import Conflict, NotFound
from easel.ids import LEAST_END, JobId, ProjectId, UserId, id_end
from easel.lake.access import EVERYTHING, Rights
from easel.records.attempt import EndReason
from easel.records.job import Job, JobState, Usage
from easel.store.engine import AnyRow, Tx
from easel.store.job_specs import KNOWN, SPEC, signature
from easel.store.lake.hidden_jobs import hidden
from easel.store.paging import Collection, Page, fetch
from easel.store.schema.identity import users
from easel.store.schema.jobs import IS_ACTIVE, jobs
from easel.store.stored_job import StoredJob
from easel.store.upsert import chunks

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


def same_work(tx: Tx, project_id: ProjectId, work: str, limit: int = 5) -> list[Job]:
    """Finished jobs with this signature, newest first."""
    query = select(*JOB_COLUMNS).where(
        jobs.c.project_id == project_id, jobs.c.signature == work, jobs.c.state == JobState.FINISHED.value
    )
    return [job_of(row) for row in tx.execute(query.order_by(jobs.c.seq.desc()).limit(limit))]


def job_of(row: AnyRow | StoredJob, spec: JobSpec | None = None) -> Job:
    """The job that a row is; `spec` where the row has it not."""
    return Job(
        id=JobId(row.id),
        project_id=ProjectId(row.project_id),
        user_id=UserId(row.user_id),
        spec=KNOWN.of(row.id, row.spec) if spec is None else spec,
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


def list_jobs(
    tx: Tx, project_id: ProjectId, request: PageRequest, rights: Rights = EVERYTHING
) -> Page[tuple[Job, str]]:
    """Returns jobs, each with its owner's name; without those that `rights` hide, where those are given."""
    if rights is EVERYTHING:
        found = fetch(tx, _LISTED, JOBS, request, {"of_project": project_id})
    else:
        shown = _LISTED.where(not_(hidden(rights))).params(of_project=project_id)
        found = fetch(tx, shown, JOBS, request)
    return found.map(
        lambda row: (job_of(row, KNOWN.of_text(row.id, row.spec_text)), row.owner or row.user_id)
    )


def rows(tx: Tx, ids: Iterable[str], *, lock: bool = True) -> dict[str, StoredJob]:
    """Returns everything about these jobs, for whoever will change them in this transaction.

    Who only looks says that there is nothing to `lock`: else nobody could change them meanwhile. A reader never locks.
    """
    wanted = sorted(set(ids))
    found: dict[str, StoredJob] = {}
    for start in range(0, len(wanted), 500):
        query = select(jobs).where(jobs.c.id.in_(wanted[start : start + 500]))
        if lock and not tx.only_reads:
            # Everybody locks jobs in the order of their ids: two who want the same ones never wait for each other.
            query = query.order_by(jobs.c.id).with_for_update()
        found.update((row.id, StoredJob._make(row)) for row in tx.execute(query))
    return found


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


_NEWEST = select(func.coalesce(func.max(jobs.c.seq), 0))


def ever(tx: Tx) -> int:
    """Returns at least as many as all jobs that there ever were, in all projects."""
    return int(tx.execute(_NEWEST).scalar_one())


def count_by_state(tx: Tx, project_id: ProjectId) -> dict[str, int]:
    query = select(jobs.c.state, func.count()).where(jobs.c.project_id == project_id).group_by(jobs.c.state)
    return {str(state): int(count) for state, count in tx.execute(query)}
