"""Queries on what a job belongs to: the trial of an app, the point of a study, a pipeline, a profile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy import select

from easel.ids import JobId, ProjectId
from easel.store.engine import Tx
from easel.store.schema.apps import app_trials, apps
from easel.store.schema.jobs import jobs, pipelines
from easel.store.schema.price import profile_runs, profiles
from easel.store.schema.studies import studies, study_points

MOST = 20


class PlaceInApp(NamedTuple):
    """The app that a job is a trial of, and what the trial came to."""

    app: str
    name: str
    quality: float | None
    model_set: str | None


class PlaceInStudy(NamedTuple):
    """The study that a job is a point of, the point's number and its values."""

    study: str
    number: int
    point: Mapping[str, Any]


class PlaceInPipeline(NamedTuple):
    """The pipeline that a job is a step of, and the step's name."""

    id: str
    name: str
    step: str | None


def trials(tx: Tx, project_id: ProjectId, job_id: JobId) -> list[PlaceInApp]:
    """Returns the apps of this project that the job is a trial of."""
    query = (
        select(apps.c.name.label("app"), app_trials.c.name, app_trials.c.quality, app_trials.c.model_set)
        .join(apps, apps.c.id == app_trials.c.app_id)
        .where(app_trials.c.job_id == job_id, apps.c.project_id == project_id)
    )
    return [PlaceInApp._make(row) for row in tx.execute(query.order_by(apps.c.name).limit(MOST))]


def point(tx: Tx, project_id: ProjectId, job_id: JobId) -> PlaceInStudy | None:
    """Returns the study that the job is a point of; None where it is of none."""
    query = (
        select(studies.c.name.label("study"), study_points.c.number, study_points.c.point)
        .join(studies, studies.c.id == study_points.c.study_id)
        .where(study_points.c.job_id == job_id, studies.c.project_id == project_id)
    )
    row = tx.execute(query).one_or_none()
    return None if row is None else PlaceInStudy._make(row)


def step(tx: Tx, project_id: ProjectId, job_id: JobId) -> PlaceInPipeline | None:
    """Returns the pipeline that the job is a step of; None where it is of none."""
    query = (
        select(pipelines.c.id, pipelines.c.name, jobs.c.step)
        .join(jobs, jobs.c.pipeline_id == pipelines.c.id)
        .where(jobs.c.id == job_id, pipelines.c.project_id == project_id)
    )
    row = tx.execute(query).one_or_none()
    return None if row is None else PlaceInPipeline._make(row)


def profile(tx: Tx, project_id: ProjectId, job_id: JobId) -> str | None:
    """The profile that the job was run for."""
    query = (
        select(profiles.c.name)
        .join(profile_runs, profile_runs.c.profile_id == profiles.c.id)
        .where(profile_runs.c.job_id == job_id, profiles.c.project_id == project_id)
    )
    return tx.execute(query.limit(1)).scalar_one_or_none()
