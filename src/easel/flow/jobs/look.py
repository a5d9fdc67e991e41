"""Looking at jobs: their lines, their series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from easel.declare.job import JobSpec
from easel.declare.page import PageRequest
from easel.errors import NotFound
from easel.flow.lake.visible import need_job as need_job
from easel.flow.lake.visible import telling_rights, visible_job, visible_jobs
from easel.records.environment import LockedEnvironment
from easel.records.identity import Caller
from easel.records.job import TERMINAL, Job, JobState
from easel.store import environments, job_attempts, job_logs, job_series, job_specs, jobs
from easel.store.engine import Tx
from easel.store.job_attempts import EndedAttempt
from easel.store.job_logs import LogLine
from easel.store.job_series import Mark, Point, Series
from easel.store.lake import tags
from easel.store.paging import Page


def list_jobs(tx: Tx, caller: Caller, page: PageRequest) -> Page[tuple[Job, str]]:
    """Returns the project's jobs, newest first, as the caller may see them, each with its owner's name."""
    found = jobs.list_jobs(tx, caller.project_id, page, telling_rights(tx, caller, page))
    seen = visible_jobs(tx, caller, [job for job, _ in found.items])
    return Page(list(zip(seen, (owner for _, owner in found.items), strict=True)), found.next_cursor)


def count_by_state(tx: Tx, caller: Caller) -> dict[str, int]:
    """Returns how many jobs of the project are in each state."""
    return jobs.count_by_state(tx, caller.project_id)


def find_job(tx: Tx, caller: Caller, job_id: str) -> Job:
    """Returns a job as the caller may see it; NotFound where their project has none of that id."""
    return visible_job(tx, caller, jobs.find(tx, caller.project_id, job_id))


def environment_of(tx: Tx, caller: Caller, job_id: str) -> LockedEnvironment:
    """Returns the packages that a job ran with; NotFound where it ran with the device's own."""
    job = need_job(tx, caller, job_id)
    artifact = jobs.rows(tx, [job.id], lock=False)[job.id].artifact_id
    name = tags.tags_of(tx, [artifact]).get(artifact, {}).get("environment")
    found = environments.find(tx, caller.project_id, str(name)) if name is not None else None
    if found is None:
        raise NotFound(
            f"job {job_id} ran in no environment of its own, or it is not known what that was locked to"
        )
    return found


def spec_as_json(spec: JobSpec) -> dict[str, Any]:
    """Returns what was asked for, as it is stored and shown."""
    found: dict[str, Any] = job_specs.SPEC.dump_python(spec, mode="json")
    return found


def series_lengths(tx: Tx, caller: Caller, job_id: str) -> dict[str, int]:
    """Returns how many points each series has that the job's latest attempt has logged."""
    job = need_job(tx, caller, job_id)
    return job_series.series_of(tx, job.id, job.attempt)


MOST_OF_A_LINE = 500


@dataclass(frozen=True, slots=True)
class Lines:
    lines: Sequence[LogLine]
    next: int
    attempt: int
    over: bool


def log_lines(
    tx: Tx,
    caller: Caller,
    job_id: str,
    *,
    after: int = 0,
    limit: int = 1000,
    search: str | None = None,
    attempt: int | None = None,
) -> Lines:
    """Lines from number `after` on, of the latest attempt unless another is asked for."""
    job = need_job(tx, caller, job_id)
    which = job.attempt if attempt is None else attempt
    if search:
        found = job_logs.search_lines(tx, job.id, which, search, after, limit)
    else:
        found = job_logs.read_lines(tx, job.id, which, after, limit)
    over = job.state in TERMINAL or which < job.attempt
    return Lines(found, found[-1].number + 1 if found else after, which, over)


def last_line(tx: Tx, caller: Caller, job: Job) -> str | None:
    """What a failed job said last, on standard error if it did: of a traceback, the error itself."""
    if job.state is not JobState.FAILED or job.attempt == 0:
        return None
    try:
        need_job(tx, caller, job.id)
    except NotFound:
        return None
    return job_logs.last_line(tx, job.id, job.attempt)[:MOST_OF_A_LINE] or None


def attempts(tx: Tx, caller: Caller, job_id: str) -> list[EndedAttempt]:
    """The job's attempts that are over, in order."""
    return job_attempts.of_job(tx, need_job(tx, caller, job_id).id)


def series(tx: Tx, caller: Caller, job_id: str, name: str, points: int) -> tuple[int, list[Point]]:
    """(how many there are, at most `points` of them)."""
    job = need_job(tx, caller, job_id)
    of = Series(job.id, job.attempt, name)
    total, marks = job_series.outline(tx, of)
    if not marks:
        raise NotFound(f"job {job_id} has logged no metric {name[:100]!r}")
    return total, job_series.points_at(tx, of, [mark.step for mark in thin(marks, points)])


def thin(points: Sequence[Mark], limit: int) -> list[Mark]:
    """Returns at most `limit` of them: of each stretch the smallest and the largest, so that no spike disappears.

    The first and the last always stay, and so does the first value of a stretch that is no number.
    """
    if len(points) <= limit:
        return list(points)
    if limit < 4:
        return [points[0], points[-1]][:limit]
    inner = points[1:-1]
    buckets = (limit - 2) // 2
    kept = [points[0]]
    for number in range(buckets):
        stretch = inner[len(inner) * number // buckets : len(inner) * (number + 1) // buckets]
        numbers = [p for p in stretch if p.value is not None]
        if not numbers:
            kept += stretch[:1]
            continue
        extremes = {min(numbers, key=_value), max(numbers, key=_value)}
        odd = next((p for p in stretch if p.value is None), None)
        if odd is not None:
            extremes = {min(numbers, key=_value), odd}
        kept += sorted(extremes, key=lambda point: point.step)
    return [*kept, points[-1]]


def _value(point: Mark) -> float:
    assert point.value is not None
    return point.value
