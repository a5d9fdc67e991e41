"""A point becomes a job: its values in the command, its resources provisioned, its share of the data. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from easel.declare.goal import COST, TIME
from easel.declare.job import Command, EntryPoint, JobSpec, Notebook
from easel.declare.space import Point
from easel.declare.study import PROVISIONED, StudySpec, provisioned
from easel.records.study import PointOutcome, StudyPoint

# `${HOME}` is the shell's; `{{name}}` stands for the braces themselves.
_HOLE = re.compile(r"\{\{([A-Za-z0-9_.-]+)\}\}|(?<![${])\{([A-Za-z0-9_.-]+)\}(?!\})")


def placeholders(part: str) -> list[str]:
    """The names in `{name}` of one argument."""
    return [name for _, name in _HOLE.findall(part) if name]


def fraction_of(spec: StudySpec, point: Point) -> float | None:
    """The share of the data; None where the study has no such dimension."""
    return None if spec.share is None else float(point[spec.share.name])


SLICE_FROM = "EASEL_SLICE_FROM"
"""The variable that tells a job how far the slice was that it goes on from."""


@dataclass(frozen=True, slots=True)
class EarlierPoint:
    """A point that ended lower down with the same settings: how far it came, the set in which it left its checkpoint,
    and what was used up until then, its own earlier slices included."""

    number: int
    reached: float
    seconds: float
    cost: float
    job_id: str
    checkpoint: str | None = None


def earlier_of(
    spec: StudySpec, point: Point, points: Sequence[StudyPoint], reached: float | None = None
) -> EarlierPoint | None:
    """The furthest of the points that this one could go on from, or the one that had `reached` so far; None where it
    begins anew."""
    name = spec.slices
    if name is None:
        return None
    rest = {key: value for key, value in point.items() if key != name}
    able = [
        EarlierPoint(
            one.number,
            float(one.point[name]),
            one.values.get(TIME, 0.0),
            one.values.get(COST, 0.0),
            str(one.job_id),
        )
        for one in points
        if one.outcome is PointOutcome.COMPLETED
        and one.job_id is not None
        and {key: value for key, value in one.point.items() if key != name} == rest
        and (float(one.point[name]) < float(point[name]) if reached is None else one.point[name] == reached)
    ]
    return max(able, key=lambda one: one.reached, default=None)


def job_for(
    spec: StudySpec,
    study: str,
    number: int,
    point: Point,
    sample: str | None,
    limit_s: float | None,
    before: EarlierPoint | None = None,
) -> JobSpec:
    """`sample`: the file set to read in place of the whole input; `limit_s`: seconds that the budget still allows;
    `before`: the slice that it goes on from."""
    variables = {**spec.job.environment.variables, "EASEL_POINT": json.dumps(dict(point))}
    share = fraction_of(spec, point)
    if share is not None:
        variables["EASEL_DATA_FRACTION"] = repr(share)
    if before is not None:
        variables[SLICE_FROM] = repr(before.reached)
    run = spec.job.run
    if isinstance(run, Command):
        run = Command(fill(run.argv, {d.name for d in spec.space.dimensions}, point))
    elif isinstance(run, EntryPoint):
        run = EntryPoint(run.target, {**run.arguments, **point})
    elif isinstance(run, Notebook):
        share_name = {spec.share.name} if spec.share else set()
        given = {name: value for name, value in point.items() if name not in {*PROVISIONED, *share_name}}
        run = replace(run, parameters={**run.parameters, **given})
    limits = [limit for limit in (spec.job.time_limit_s, limit_s) if limit is not None]
    return replace(
        spec.job,
        name=f"{study} #{number}"[:100],
        run=run,
        input=sample if sample is not None else spec.job.input,
        output_set=None,
        environment=replace(spec.job.environment, variables=variables),
        resources=provisioned(spec.job.resources, point),
        time_limit_s=min(limits) if limits else None,
        tags={**spec.job.tags, "study": study, "point": float(number)},
        preemptible=spec.job.preemptible or spec.slices is not None,
        slice=spec.slices is not None,
        resume=None if before is None else before.checkpoint,
    )


def fill(argv: Sequence[str], dimensions: set[str], point: Mapping[str, Any]) -> tuple[str, ...]:
    """`--rate {rate}` with the point's values; `{{rate}}` stands for `{rate}` itself.

    An argument that names a dimension which does not apply to the point is left out, with the flag before it.
    """
    filled: list[str] = []
    for part in argv:
        named = [name for name in placeholders(part) if name in dimensions]
        if any(name not in point for name in named):
            if filled and part.startswith("{") and filled[-1].startswith("-") and "=" not in filled[-1]:
                filled.pop()
            continue
        filled.append(_HOLE.sub(lambda hole: _text(point, hole), part))
    return tuple(filled)


def _text(point: Mapping[str, Any], hole: re.Match[str]) -> str:
    if hole[1]:
        return f"{{{hole[1]}}}"
    if hole[2] not in point:
        return hole[0]
    value = point[hole[2]]
    return repr(value) if isinstance(value, float) else str(value)
