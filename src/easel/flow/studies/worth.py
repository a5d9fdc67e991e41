"""What a study's next point may bring, for the policy: a tenant whose one candidate is that point. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from easel.declare.goal import Goal, own_use
from easel.declare.resources import Resources
from easel.price.bill import MICROS
from easel.records.decision import StartTrial
from easel.records.study import PointOutcome, StoredStudy, StudyPoint
from easel.records.tenant import Terms
from easel.schedule.prior import NOISE, Prior
from easel.schedule.state import Pull, Tenant

FIRST_MEAN, FIRST_SD = 0.5, 0.2
"""What is expected of a point before anything was measured."""
LEAST_SD = 0.02
FIRST_COST_S = 60.0
RECENT = 10
NEXT_POINT = "next point"


def tenant_of(
    study: StoredStudy,
    points: Sequence[StudyPoint],
    terms: Terms,
    need: Resources,
    running: Sequence[StartTrial] = (),
    price_per_hour: float = 0.0,
) -> Tenant:
    """Quality is what the goal makes of a measurement, from 0 to 1 as an app's accuracy is; what the next point may
    bring is judged by what the latest ones brought, and its cost by theirs. Points that run do not keep it from
    starting another: `taken` speaks of the next point alone."""
    ended = [p for p in points if p.outcome is not None]
    qualities = worth(study.spec.goal, ended)
    latest = qualities[-RECENT:]
    mean = float(np.mean(latest)) if latest else FIRST_MEAN
    sd = max(float(np.std(latest)), LEAST_SD) if len(latest) > 1 else FIRST_SD
    used = [own_use(p.values) for p in ended]
    seconds = [one["time"] for one in used if one.get("time", 0.0) > 0]
    cost = float(np.mean(seconds[-RECENT:])) if seconds else FIRST_COST_S
    spent = sum(one.get("cost", 0.0) for one in used if math.isfinite(one.get("cost", 0.0)))
    return Tenant(
        name=study.id,
        candidates=(NEXT_POINT,),
        belief=Prior(np.array([mean]), np.array([[sd**2]]), NOISE, method="its latest points").belief(),
        cost=np.array([cost]),
        weight=terms.weight,
        deadline=math.inf if terms.deadline is None else terms.deadline.timestamp(),
        budget=math.inf if terms.budget_micros is None else terms.budget_micros / MICROS,
        rates=np.array([price_per_hour / 3600.0]) if terms.budget_micros is not None else None,
        ceiling=1.0,
        best=max(qualities, default=0.0),
        starts=len(points),
        spent=spent,
        needs=(need,),
        project=study.project_id,
        running=tuple(running),
        reserved=sum(r.limit for r in running) if terms.budget_micros is not None else 0.0,
        pulls=tuple(Pull(0, quality) for quality in qualities),
    )


def worth(goal: Goal, points: Sequence[StudyPoint]) -> list[float]:
    """Each ended point's quality: 0 where it failed or misses a constraint.

    A share that is to be maximised (accuracy) stands for itself; anything else is put against the first feasible value
    `r`: `1/(1 + exp(−sign·(v − r)/|r|))`, one half for as good as the first, more for better.
    """
    found, reference = [], math.nan
    for point in points:
        value = point.values.get(goal.quantity, math.nan)
        if point.outcome is not PointOutcome.COMPLETED or not goal.meets(point.values):
            found.append(0.0)
            continue
        if goal.sign > 0 and 0.0 <= value <= 1.0:
            found.append(value)
            continue
        if math.isnan(reference):
            reference = value
        step = goal.sign * (value - reference) / max(abs(reference), 1e-12)
        found.append(1.0 / (1.0 + math.exp(-min(max(step, -50.0), 50.0))))
    return found
