"""Slurm as an engine: the suite, on a real one-node cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from easel.run.executors.base import Executor
from easel.run.executors.slurm import SlurmEngine, SlurmOptions
from easel.testing.executor import ExecutorSuite, Make, clean
from easel.testing.fleet import EngineServer, engine_server
from easel.testing.slurm import Slurm


@pytest.fixture(scope="module")
def server(slurm: Slurm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineServer]:
    home = tmp_path_factory.mktemp("home")
    engine = SlurmEngine(SlurmOptions(home / "slurm"), slurm.variables)
    with engine_server(home, engine) as made:
        yield made


class TestSlurm(ExecutorSuite):
    capacity_is_told = False

    @pytest.fixture
    def make(self, server: EngineServer) -> Iterator[Make]:
        def made(_name: str) -> Executor:
            return server.executor()

        yield made
        clean(server.executor())
