"""One module a noun; `all_routers` is what the app mounts."""

from __future__ import annotations

from fastapi import APIRouter

from easel.serve.routes import (
    events,
    jobs,
    pipelines,
    prices,
    profiles,
    projects,
    queues,
    session,
    tokens,
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
        prices.router,
        profiles.router,
        pipelines.router,
        queues.router,
    ]
