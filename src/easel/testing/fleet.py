"""A server whose workers an engine starts: what tests of Ray and Slurm share."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from easel.clock import SystemClock
from easel.flow.workers.executor import RemoteExecutor
from easel.flow.workers.fleet import FleetKeeper, FleetPace
from easel.run.executors.engine import Engine, WorkerPlan
from easel.serve.settings import UNDERSTOOD
from easel.testing.remote_workers import RemoteServer


class EngineServer(RemoteServer):
    """`executor()` drives the engine's workers; the loop that places them runs beside."""

    def __init__(self, home: Path, engine: Engine, warm_s: float = 1.0) -> None:
        super().__init__(home)
        self.engine, self.warm_s = engine, warm_s
        self._current: RemoteExecutor | None = None
        self.keeper = FleetKeeper(
            self.store, engine, self._plan, SystemClock(), self._leads, FleetPace(every_s=0.2, settle_s=10.0)
        )

    def _plan(self) -> WorkerPlan:
        variables = {
            "EASEL_WARM_TRIALS": "false",
            "EASEL_SANDBOX": "false",
            "EASEL_UNSANDBOXED": UNDERSTOOD,
        }
        return WorkerPlan(self.address, self.token, self.engine.name, self.warm_s, variables)

    def _leads(self) -> bool:
        return self._current is not None and self._current.driving

    def executor(self) -> RemoteExecutor:
        self._current = RemoteExecutor(
            self.store, self.seal, SystemClock(), self.engine.name, lost_after=60.0, passing=True
        )
        return self._current

    def close(self) -> None:
        self.keeper.close(stop=True)
        super().close()


@contextlib.contextmanager
def engine_server(home: Path, engine: Engine, warm_s: float = 1.0) -> Iterator[EngineServer]:
    server = EngineServer(home, engine, warm_s)
    server.start()
    server.store.listen(server.keeper.wake)
    server.keeper.start()
    try:
        yield server
    finally:
        server.close()
