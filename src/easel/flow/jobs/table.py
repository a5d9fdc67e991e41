"""Jobs as a table: each with its tags, which hold what it measured, and what it was billed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from easel.declare.page import PageRequest
from easel.flow.lake.visible import HIDDEN_NAME, telling_rights, visible_jobs
from easel.ids import UserId
from easel.lake.query.language import parse_query
from easel.records.identity import Caller
from easel.records.job import Job
from easel.records.lake import Kind, TagValue
from easel.store import identity, job_table
from easel.store.engine import Tx
from easel.store.job_table import Billed
from easel.store.lake import tags
from easel.store.lake.artifacts import creators_named
from easel.store.lake.grants import rights_of
from easel.store.lake.search import matching


@dataclass(frozen=True, slots=True)
class JobRow:
    job: Job
    owner: str
    tags: Mapping[str, TagValue]
    billed: Billed | None


@dataclass(frozen=True, slots=True)
class JobRows:
    items: Sequence[JobRow]
    next_cursor: str | None


def job_rows(tx: Tx, caller: Caller, request: PageRequest, where: str = "") -> JobRows:
    """A page of jobs for which `where` holds, e.g. `accuracy > 0.9 and model = BERT`."""

    def find_users(name: str) -> list[UserId]:
        return creators_named(tx, caller.project_id, name)

    among = None
    if where.strip():
        rights = rights_of(tx, caller)
        among = matching(caller.project_id, Kind.JOB, rights, parse_query(where, tx.now), find_users)
    found = job_table.page(tx, caller.project_id, request, among, telling_rights(tx, caller, request))
    seen = visible_jobs(tx, caller, [row.job for row in found.items])
    known = tags.tags_of(tx, [row.artifact_id for row in found.items if row.artifact_id is not None])
    bills = job_table.billed(tx, [job.id for job in seen])
    names = identity.names_of(tx, [job.user_id for job in seen])
    items = [
        JobRow(
            job=job,
            owner=names[job.user_id],
            tags={} if job.name == HIDDEN_NAME else known.get(row.artifact_id or 0, {}),
            billed=bills.get(job.id),
        )
        for row, job in zip(found.items, seen, strict=True)
    ]
    return JobRows(items, found.next_cursor)
