"""Queries on what came of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import Select, select

from easel.ids import JobId
from easel.records.attempt import EndReason
from easel.records.job import JobOutcome, JobState
from easel.store.engine import Tx
from easel.store.schema.jobs import jobs
from easel.store.upsert import chunks, in_slots, slot_values, slots_for

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
