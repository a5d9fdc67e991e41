"""Ray and Slurm from settings: the executor, the engine behind it, and the loop that keeps its workers in step."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from easel.clock import Clock
from easel.errors import Misconfigured
from easel.flow.secrets import hashed
from easel.flow.workers.executor import RemoteExecutor
from easel.flow.workers.fleet import FleetKeeper, FleetPace
from easel.flow.workers.seal import Seal
from easel.flow.workers.tokens import issue
from easel.run.executors.engine import Engine, WorkerPlan
from easel.run.executors.ray import RayEngine
from easel.run.executors.slurm import SlurmEngine, SlurmOptions
from easel.serve.settings import Settings
from easel.store import worker_tokens
from easel.store.engine import Store


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """Which engine, where placed workers find the server, and how long they stay warm."""

    engine: Callable[[], Engine]
    name: str
    server: str
    keep_warm_s: float = 60.0
    most: int = 64
    time_s: float | None = None
    variables: dict[str, str] = field(default_factory=dict)


def chosen(settings: Settings, address: str) -> EngineChoice | None:
    """What `executor` names, or None for devices of our own. `address` is where this server listens."""
    if settings.executor not in ("ray", "slurm"):
        return None
    server = settings.public_url or address
    if not server:
        raise Misconfigured("workers that Ray or Slurm start must find the server: set EASEL_PUBLIC_URL")
    variables = {
        "EASEL_SANDBOX": str(settings.sandbox).lower(),
        "EASEL_UNSANDBOXED": settings.unsandboxed,
        "EASEL_INTERPRETERS": json.dumps([str(path) for path in settings.interpreters]),
        "EASEL_WARM_TRIALS": str(settings.warm_trials).lower(),
    }
    folder = settings.folder / "run"
    if settings.executor == "ray":
        token: dict[str, str] = {}
        if settings.ray_token_file:
            token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(settings.ray_token_file)}
        log = folder / "ray.log"

        def ray() -> Engine:
            return RayEngine(settings.ray_address, log, token)

        return EngineChoice(
            ray, "ray", server, settings.keep_warm_s, settings.max_placed_workers, None, variables
        )
    options = SlurmOptions(
        folder=settings.slurm_folder or folder / "slurm",
        partition=settings.slurm_partition,
        account=settings.slurm_account,
        qos=settings.slurm_qos,
        gres=settings.slurm_gres,
        python=settings.slurm_python or sys.executable,
        more=tuple(shlex.split(settings.slurm_options)),
    )
    return EngineChoice(
        lambda: SlurmEngine(options),
        "slurm",
        server,
        settings.keep_warm_s,
        settings.max_placed_workers,
        settings.slurm_minutes * 60.0 if settings.slurm_minutes else None,
        variables,
    )


def build_engine_executor(
    store: Store, choice: EngineChoice, home: Path, seal: Seal, clock: Clock, lost_after: float
) -> RemoteExecutor:
    """An executor whose workers the engine starts; it and the loop behind it end together."""
    keepers: list[FleetKeeper] = []
    executor = RemoteExecutor(
        store,
        seal,
        clock,
        choice.name,
        lost_after,
        passing=True,
        on_stop=lambda: keepers[0].close(stop=True),
    )
    token_file = home / "run" / f"{choice.name}.token"

    def worker() -> WorkerPlan:
        token = engine_token(store, token_file, choice.name)
        return WorkerPlan(choice.server, token, choice.name, choice.keep_warm_s, choice.variables)

    pace = FleetPace(most=choice.most, time_s=choice.time_s)
    keeper = FleetKeeper(store, choice.engine(), worker, clock, lambda: executor.driving, pace)
    keepers.append(keeper)
    store.listen(keeper.wake)
    keeper.start()
    return executor


def engine_token(store: Store, file: Path, name: str) -> str:
    """The token of placed workers: made once, kept beside the database's home, made anew when it was revoked."""
    if file.exists():
        secret = file.read_text().strip()
        with store.write() as tx:
            if worker_tokens.valid(tx, [hashed(secret)]):
                return secret
    with store.write() as tx:
        made = issue(tx, None, f"workers of {name}")
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    fresh.touch(mode=0o600)
    fresh.write_text(made.secret)
    fresh.replace(file)
    return made.secret
