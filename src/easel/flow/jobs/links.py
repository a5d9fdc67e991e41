"""What a job belongs to, by name: so that pages and commands lead from one to the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from easel.flow.lake.visible import need_job
from easel.records.identity import Caller
from easel.store import job_places
from easel.store.engine import Tx


@dataclass(frozen=True, slots=True)
class OfApp:
    app: str
    candidate: str
    quality: float | None
    model: str | None


@dataclass(frozen=True, slots=True)
class OfStudy:
    study: str
    number: int
    point: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class OfPipeline:
    pipeline: str
    name: str
    step: str


@dataclass(frozen=True, slots=True)
class Links:
    """A trial may serve several apps of a project; all else there is at most one of."""

    apps: Sequence[OfApp]
    study: OfStudy | None
    pipeline: OfPipeline | None
    profile: str | None


def links_of(tx: Tx, caller: Caller, job_id: str) -> Links:
    """The apps, the study, the pipeline and the profile that the job was run for."""
    job = need_job(tx, caller, job_id)
    point = job_places.point(tx, caller.project_id, job.id)
    step = None if job.pipeline_id is None else job_places.step(tx, caller.project_id, job.id)
    return Links(
        apps=[
            OfApp(row.app, row.name, row.quality, row.model_set)
            for row in job_places.trials(tx, caller.project_id, job.id)
        ],
        study=None if point is None else OfStudy(point.study, point.number, point.point),
        pipeline=None if step is None else OfPipeline(step.id, step.name, step.step or ""),
        profile=job_places.profile(tx, caller.project_id, job.id),
    )
