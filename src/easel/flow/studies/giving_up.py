"""When a study is not worth going on with: its first points all broke, or none measured what the goal asks for."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from easel.declare.goal import Goal
from easel.records.study import PointOutcome, StudyPoint

FIRST = 3
"""So many points without anything to go by are enough: a slip repeats itself, bad luck rarely does."""


def lacking(goal: Goal, point: StudyPoint) -> list[str]:
    """The quantities of the goal that a completed point did not log; what it logged as NaN it did."""
    return [name for name in goal.quantities if name not in point.values]


def why_give_up(goal: Goal, points: Sequence[StudyPoint]) -> str | None:
    """Why nothing can come of the study; None while something may.

    Points that run may still show the opposite; until then no further one is worth its money. Points that the study
    itself cut short say nothing about this.
    """
    ended = [p for p in points if p.outcome is not None and p.outcome is not PointOutcome.STOPPED]
    if len(ended) < FIRST or any(p.outcome is PointOutcome.STOPPED for p in points):
        return None
    if all(point.outcome is PointOutcome.FAILED for point in ended):
        return f"its first {len(ended)} points all failed, the last with: {ended[-1].reason}"
    completed = [point for point in ended if point.outcome is PointOutcome.COMPLETED]
    missing = set.intersection(*(set(lacking(goal, point)) for point in completed))
    if not missing:
        return None
    name = sorted(missing)[0]
    measured = sorted({key for point in completed for key in point.values} - {"time", "cost", "memory"})
    heard = f"they measured {', '.join(measured[:10])}" if measured else "they measured nothing"
    close = difflib.get_close_matches(name, measured, 1)
    meant = f" (did you mean {close[0]}?)" if close else ""
    return (
        f"its first {len(ended)} points did not measure {name}, which the goal asks for: {heard}{meant}. Print "
        f"[EASEL_METRIC] {name}=…, or call easel.log_metric. Of the last: {completed[-1].reason}"
    )
