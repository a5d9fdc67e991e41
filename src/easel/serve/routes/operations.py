"""Whether this server is alive, ready and well; its measurements; taking it out of a proxy's turn."""

from __future__ import annotations

import shutil
from pathlib import Path

from fastapi import Request, Response

from easel.errors import TryLater
from easel.flow.operate import backups
from easel.flow.operate.health import Check, ServerState, Severity, health, readiness
from easel.serve.access import PlatformAdmin, State, anyone, platform_admin
from easel.serve.router import Router
from easel.serve.state import AppState
from easel.version import __version__
from easel.wire import operate as wire

router = Router(tags=["operations"])


@router.get("/healthz", dependencies=[anyone])
def healthz() -> dict[str, str]:
    """The process is alive."""
    return {"status": "ok"}


@router.get("/readyz", dependencies=[anyone])
def readyz(state: State) -> dict[str, str]:
    """The database answers and has this release's schema, the disk has room, and nobody cordoned this server.

    Otherwise 503, and the answer says everything that is wrong.
    """
    wrong = _failed(readiness(state.store, server_state(state)))
    if wrong:
        told = "; ".join(check.detail for check in wrong)
        raise TryLater(told, checks=[{"name": check.name, "detail": check.detail} for check in wrong])
    return {"status": "ready"}


@router.get("/metrics", response_class=Response, dependencies=[anyone])
def metrics(request: Request, state: State) -> Response:
    """Prometheus measurements; a platform admin's token is needed unless EASEL_PUBLIC_METRICS is set."""
    if not state.settings.public_metrics:
        platform_admin.check(request)
    return Response(state.metrics.text(), media_type="text/plain; version=0.0.4")


@router.get("/api/v1/health", response_model=wire.Health)
def server_health(state: State, caller: PlatformAdmin) -> wire.Health:
    """What is well and what is wrong: this server, its database and disk, the controller and the pool."""
    checks = health(state.store, server_state(state))
    return wire.Health(
        version=__version__,
        ready=not _failed(checks),
        checks=[
            wire.HealthCheck(name=check.name, severity=check.severity.value, detail=check.detail)
            for check in checks
        ],
    )


@router.put("/api/v1/cordon", response_model=wire.Cordoned)
def cordon_server(state: State, caller: PlatformAdmin, body: wire.Cordon) -> wire.Cordoned:
    """Let `/readyz` of the server that answers say no, so that a proxy sends it nothing more. It goes on serving."""
    state.cordoned = body.reason or f"by {caller.user.name}"
    return wire.Cordoned(reason=state.cordoned)


@router.delete("/api/v1/cordon", status_code=204)
def uncordon_server(state: State, caller: PlatformAdmin) -> None:
    """Take requests again."""
    state.cordoned = None


@router.get("/api/v1/backups", response_model=wire.Backups)
def list_backups(state: State, caller: PlatformAdmin) -> wire.Backups:
    """The plan by which backups are made, and the last of them. The plan is set on the server's machine."""
    with state.store.read() as tx:
        found = backups.look(tx)
    return wire.Backups(
        plan=None
        if found.plan is None
        else wire.BackupPlan(
            target=found.plan.target,
            every_s=found.plan.every.total_seconds(),
            keep=found.plan.keep,
            asked=found.plan.asked,
        ),
        runs=[
            wire.BackupRun(
                started_at=run.started_at,
                ended_at=run.ended_at,
                target=run.target,
                name=run.name,
                rows=run.rows,
                blobs=run.blobs,
                damaged=run.damaged,
                error=run.error,
            )
            for run in found.runs
        ],
    )


@router.post("/api/v1/backups", status_code=202)
def ask_for_backup(state: State, caller: PlatformAdmin) -> None:
    """Have one made now, by the plan."""
    with state.store.write() as tx:
        backups.ask_for_one(tx, caller.user.id)


def server_state(state: AppState) -> ServerState:
    settings = state.settings
    return ServerState(settings.folder, settings.least_free_mb << 20, free_bytes, state.cordoned)


def free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def is_ready(state: AppState) -> bool:
    return not _failed(readiness(state.store, server_state(state)))


def _failed(checks: list[Check]) -> list[Check]:
    return [check for check in checks if check.severity is Severity.FAILED]
