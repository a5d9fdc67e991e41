"""Workers that pull over HTTP as an executor: the suite, through a real server and a real worker process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from easel.run.executors.base import Executor
from easel.store import offers
from easel.testing.engine import until
from easel.testing.executor import ExecutorSuite, Make, clean
from easel.testing.remote_workers import RemoteServer, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteServer]:
    with serving(tmp_path_factory.mktemp("home")) as made:
        made.worker("box")
        until(lambda: _joined(made))
        yield made


def _joined(server: RemoteServer) -> bool:
    with server.store.read() as tx:
        return bool(offers.workers_of(tx, "remote"))


class TestRemote(ExecutorSuite):
    @pytest.fixture
    def make(self, server: RemoteServer) -> Iterator[Make]:
        def made(_name: str) -> Executor:
            return server.pool()

        yield made
        clean(server.pool())
