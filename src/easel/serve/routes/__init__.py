"""One module a noun; `all_routers` is what the app mounts."""

from __future__ import annotations

from fastapi import APIRouter

from easel.serve.routes import (
    apps,
    artifacts,
    blobs,
    events,
    files,
    filesets,
    grants,
    jobs,
    pipelines,
    prices,
    profiles,
    projects,
    queues,
    session,
    simulations,
    studies,
    tokens,
    uploads,
    users,
)


def all_routers() -> list[APIRouter]:
    return [
        session.router,
        projects.router,
        users.router,
        tokens.router,
        events.router,
        jobs.router,
        apps.router,
        studies.router,
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
    ]
