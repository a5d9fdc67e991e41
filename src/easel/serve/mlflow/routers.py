"""Every router of MLflow's API."""

from __future__ import annotations

from fastapi import APIRouter

from easel.serve.mlflow import artifacts, experiments, logged_models, registry, runs, server


def mlflow_routers() -> list[APIRouter]:
    """What clients call all the time comes first."""
    return [
        runs.router,
        artifacts.router,
        experiments.router,
        logged_models.router,
        registry.router,
        server.router,
    ]
