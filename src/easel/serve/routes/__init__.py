"""One module a noun; `all_routers` is what the app mounts."""

from __future__ import annotations

from fastapi import APIRouter

from easel.serve.mlflow.routers import mlflow_routers
from easel.serve.routes import (
    app_examples,
    app_models,
    apps,
    artifacts,
    audit,
    blobs,
    events,
    files,
    filesets,
    grants,
    invitations,
    jobs,
    operations,
    people,
    pipelines,
    prices,
    profiles,
    projects,
    queues,
    service_accounts,
    session,
    sign_on,
    simulations,
    studies,
    terms,
    tokens,
    uploads,
    users,
    worker,
    worker_tokens,
)


def all_routers() -> list[APIRouter]:
    """Looked through from the first on for each request: what workers and programs call all the time comes first."""
    return [
        worker.router,
        app_models.router,
        session.router,
        sign_on.router,
        projects.router,
        users.router,
        people.router,
        invitations.router,
        service_accounts.router,
        tokens.router,
        events.router,
        jobs.router,
        apps.programs,
        apps.router,
        app_examples.router,
        studies.router,
        terms.router,
        prices.router,
        profiles.router,
        pipelines.router,
        queues.router,
        simulations.router,
        uploads.router,
        blobs.router,
        files.router,
        filesets.router,
        artifacts.router,
        grants.router,
        audit.router,
        worker_tokens.router,
        operations.router,
        *mlflow_routers(),
    ]
