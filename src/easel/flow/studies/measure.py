"""What a point's job measured and what it has used up: its result, its series, its time, cost and memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from easel.declare.goal import COST, SLICE_COST, SLICE_TIME, TIME, BudgetKind
from easel.declare.space import Point
from easel.declare.study import StudySpec
from easel.flow.jobs.look import thin
from easel.flow.studies.prices import per_hour
from easel.records.attempt import EndReason
from easel.records.job import Job, JobState
from easel.records.study import PointOutcome, StudyPoint
from easel.store import billing, job_series
from easel.store.engine import Tx

MEMORY = "memory"
SYSTEM = "system/"
"""Series of the platform's own, beside those that the job logs."""
MAX_STEPS = 1000
"""Of longer series the extremes of each stretch, the first and the last value are looked at."""
BY_STUDY = "study: "
BUDGET_SPENT = f"{BY_STUDY}the budget is spent"
HOPELESS = f"{BY_STUDY}its curve is below the median of the others"


def measured(tx: Tx, spec: StudySpec, point: Point, job: Job) -> dict[str, float]:
    """Seconds are those of the bill, the whole time for which the job held its device; cost = price · time.

    A series counts with its last value; what the job returned counts where no series has its name.
    """
    values = {name: float(v) for name, v in (job.result or {}).items() if _is_number(v)}
    for name in job_series.series_of(tx, job.id, job.attempt):
        if not name.startswith(SYSTEM) and (series := curve(tx, job, name)):
            values[name] = series[max(series)]
    if job.usage is not None:
        values.setdefault(MEMORY, job.usage.peak_memory_mb)
    lines = billing.lines_of(tx, job.project_id, job.id)
    values[TIME] = float(sum(line.seconds for line in lines))
    if spec.space.rates is not None:
        values[COST] = values[TIME] * (spec.space.price_per_hour(point) or 0.0) / 3600.0
    else:
        values[COST] = float(sum(line.seconds * line.per_hour for line in lines)) / 3600.0
    return values


def whole_of(values: Mapping[str, float], seconds: float, cost: float) -> dict[str, float]:
    """What a point took from its beginning, of which its last slice took `values`; what that slice itself used up is
    kept beside, for the budget."""
    return {
        **values,
        SLICE_TIME: values[TIME],
        SLICE_COST: values[COST],
        TIME: values[TIME] + seconds,
        COST: values[COST] + cost,
    }


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def curve(tx: Tx, job: Job, name: str) -> dict[int, float]:
    """One series by step; what is no number is NaN or infinite, as it was logged."""
    of = job_series.Series(job.id, job.attempt, name)
    _, marks = job_series.outline(tx, of)
    found = job_series.points_at(tx, of, [mark.step for mark in thin(marks, MAX_STEPS)])
    return {p.step: float(p.text or "nan") if p.value is None else p.value for p in found}


def outcome_of(job: Job, spec: StudySpec) -> PointOutcome:
    """A run that the study itself cut short was stopped; one that a person killed or that broke has failed."""
    if job.state is JobState.FINISHED:
        return PointOutcome.COMPLETED
    cut_short = job.end_reason is EndReason.TIME_LIMIT and job.spec.time_limit_s != spec.job.time_limit_s
    return PointOutcome.STOPPED if job.end_reason is EndReason.BY_STUDY or cut_short else PointOutcome.FAILED


def running_spend(tx: Tx, spec: StudySpec, running: Sequence[StudyPoint]) -> float:
    """What these points have used up since they hold their devices, in the budget's unit."""
    kind = spec.goal.budget.kind
    if kind is BudgetKind.COUNT or not running:
        return 0.0
    since = {row.job_id: row.since for row in billing.held(tx)}
    total = 0.0
    for each in running:
        if each.job_id in since:
            seconds = max((tx.now - since[each.job_id]).total_seconds(), 0.0)
            hourly = 3600.0 if kind is BudgetKind.TIME else per_hour(tx, spec, each.point)
            total += seconds * hourly / 3600.0
    return total


def seconds_for(
    tx: Tx, spec: StudySpec, point: Mapping[str, bool | int | float | str], left: float
) -> float | None:
    """How long a run may take with this much of the budget left; None where nothing limits it."""
    kind = spec.goal.budget.kind
    if kind is BudgetKind.COUNT or not math.isfinite(left):
        return None
    if kind is BudgetKind.TIME:
        return left
    hourly = per_hour(tx, spec, point)
    return left / hourly * 3600.0 if hourly > 0 else None
