"""Easel's server in this process, as what is moved to and from."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx
import pytest
from tests.serve.conftest import World, world

from easel.sdk.mlflow.server import TrackingServer
from easel.testing.clock import FakeClock

__all__ = ["world"]

Connect = Callable[[str], TrackingServer]


@pytest.fixture
def connect(world: World) -> Iterator[Connect]:
    """Makes what speaks to a project as one of its members."""
    made = []

    def connected(project: str) -> TrackingServer:
        token = world.tokens[f"{project}-member"]
        server = TrackingServer(
            f"http://easel/mlflow/{project}", token, transport=InProcess(world), clock=FakeClock()
        )
        made.append(server)
        return server

    yield connected
    for each in made:
        each.close()


class InProcess(httpx.BaseTransport):
    """Hands requests to the app, whole."""

    def __init__(self, world: World) -> None:
        self._world = world

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        body = request.read()
        headers = {
            name: value for name, value in request.headers.items() if name not in ("host", "content-length")
        }
        path = request.url.raw_path.decode()
        answer = self._world.http.request(request.method, path, content=body, headers=headers)
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)
