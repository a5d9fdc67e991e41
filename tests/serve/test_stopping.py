"""A server that is told to stop first says that it is not ready, and goes on serving; told twice it stops at once."""

from __future__ import annotations

import signal

import uvicorn
from tests.serve.conftest import World

from easel.serve.server import Server


def _server(world: World, delay: float) -> Server:
    state = world.app.state.easel
    state.settings = state.settings.model_copy(update={"stop_delay_s": delay})
    return Server(uvicorn.Config(world.app, log_config=None), state)


def test_with_a_delay_a_proxy_learns_first(world: World) -> None:
    server = _server(world, 600.0)
    server.handle_exit(signal.SIGTERM, None)
    answer = world.call(None, "GET", "/readyz")
    assert (answer.status_code, "about to stop" in answer.json()["detail"]) == (503, True)
    assert world.call("astro-member", "GET", "/api/v1/projects/astro/jobs").status_code == 200
    assert (server.should_exit, world.app.state.easel.stopping.is_set()) == (False, False)
    server.handle_exit(signal.SIGTERM, None)
    assert (server.should_exit, world.app.state.easel.stopping.is_set()) == (True, True)


def test_without_a_delay_it_stops_at_once(world: World) -> None:
    server = _server(world, 0.0)
    server.handle_exit(signal.SIGTERM, None)
    assert (server.should_exit, world.app.state.easel.stopping.is_set()) == (True, True)
