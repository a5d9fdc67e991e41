"""What jobs were, in two words: their names, and the app or the study that they were run for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import select

from easel.store.engine import Tx
from easel.store.schema.jobs import jobs
from easel.store.upsert import chunks


class JobLabel(NamedTuple):
    """What a job is called, and its app and study where it has one."""

    name: str
    app: str | None
    study: str | None


def labels_of(tx: Tx, job_ids: Sequence[str]) -> dict[str, JobLabel]:
    """Returns the labels of these jobs, by id; of a job that is no longer there, none."""
    tags = jobs.c.spec["tags"]
    found: dict[str, JobLabel] = {}
    for some in chunks(sorted(set(job_ids))):
        query = select(jobs.c.id, jobs.c.name, tags["app"].as_string(), tags["study"].as_string())
        for job_id, name, app, study in tx.execute(query.where(jobs.c.id.in_(some))):
            found[job_id] = JobLabel(name, app, study)
    return found
