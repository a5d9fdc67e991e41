"""Queries on what a job belongs to: the trial of an app, the point of a study, a pipeline, a profile."""

from __future__ import annotations

from sqlalchemy import select

from easel.ids import JobId, ProjectId
from easel.store.engine import AnyRow, Tx
from easel.store.schema.apps import app_trials, apps
from easel.store.schema.jobs import jobs, pipelines
from easel.store.schema.price import profile_runs, profiles
from easel.store.schema.studies import studies, study_points

MOST = 20


def trials(tx: Tx, project_id: ProjectId, job_id: JobId) -> list[AnyRow]:
    """The apps of this project that the job is a trial of, with candidate, quality and model."""
    query = (
        select(apps.c.name.label("app"), app_trials.c.name, app_trials.c.quality, app_trials.c.model_set)
        .join(apps, apps.c.id == app_trials.c.app_id)
        .where(app_trials.c.job_id == job_id, apps.c.project_id == project_id)
    )
    return list(tx.execute(query.order_by(apps.c.name).limit(MOST)))


def point(tx: Tx, project_id: ProjectId, job_id: JobId) -> AnyRow | None:
    """The study that the job is a point of, and the point's number."""
    query = (
        select(studies.c.name.label("study"), study_points.c.number, study_points.c.point)
        .join(studies, studies.c.id == study_points.c.study_id)
        .where(study_points.c.job_id == job_id, studies.c.project_id == project_id)
    )
    return tx.execute(query).one_or_none()


def step(tx: Tx, project_id: ProjectId, job_id: JobId) -> AnyRow | None:
    """The pipeline that the job is a step of, and the step's name."""
    query = (
        select(pipelines.c.id, pipelines.c.name, jobs.c.step)
        .join(jobs, jobs.c.pipeline_id == pipelines.c.id)
        .where(jobs.c.id == job_id, pipelines.c.project_id == project_id)
    )
    return tx.execute(query).one_or_none()


def profile(tx: Tx, project_id: ProjectId, job_id: JobId) -> str | None:
    """The profile that the job was run for."""
    query = (
        select(profiles.c.name)
        .join(profile_runs, profile_runs.c.profile_id == profiles.c.id)
        .where(profile_runs.c.job_id == job_id, profiles.c.project_id == project_id)
    )
    return tx.execute(query.limit(1)).scalar_one_or_none()
