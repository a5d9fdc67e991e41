"""Ray as an engine: the suite, on a real cluster of a head and a node."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from easel.run.executors.base import Executor
from easel.run.executors.ray import RayEngine
from easel.testing.executor import ExecutorSuite, Make, clean
from easel.testing.fleet import EngineServer, engine_server
from easel.testing.ray import RayCluster


@pytest.fixture(scope="module")
def server(ray_cluster: RayCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineServer]:
    home = tmp_path_factory.mktemp("home")
    engine = RayEngine(ray_cluster.address, home / "ray.log", ray_cluster.variables)
    with engine_server(home, engine) as made:
        yield made


class TestRay(ExecutorSuite):
    capacity_is_told = False

    @pytest.fixture
    def make(self, server: EngineServer) -> Iterator[Make]:
        def made(_name: str) -> Executor:
            return server.executor()

        yield made
        clean(server.executor())
