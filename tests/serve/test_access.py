"""Every route × every kind of caller."""

from __future__ import annotations

import pytest
from tests.serve.conftest import World

from easel.flow.authenticate import Level
from easel.serve.app import api_routes, declared_level

CALLERS = {
    None: Level.ANYONE,
    "astro-member": Level.MEMBER,
    "astro-admin": Level.PROJECT_ADMIN,
    "root": Level.PLATFORM_ADMIN,
}


def test_every_route_declares_who_may_call_it(world: World) -> None:
    undeclared = [route.path for route in api_routes(world.app) if declared_level(route) is None]
    assert undeclared == []


def test_every_route_refuses_exactly_those_below_its_level(world: World) -> None:
    """Bodies are empty, so who may pass gets at most a complaint about the body, never 401 or 403."""
    wrong: list[str] = []
    for route in api_routes(world.app):
        level = declared_level(route)
        assert level is not None
        if route.path == "/metrics" or route.path.endswith("/stream"):
            continue  # /metrics asks by setting, a stream does not end: tested on their own
        path = (
            route.path.replace("{project}", "astro").replace("{user}", "nobody").replace("{token_id}", "no")
        )
        path = path.replace("{", "").replace("}", "")
        for method in route.methods or ():
            for who, has in CALLERS.items():
                status = world.call(who, method, path).status_code
                if who is None:
                    right = status != 401 if level is Level.ANYONE else status == 401
                elif has >= level:
                    right = status not in (401, 403)
                else:
                    right = status == 403
                if not right or status >= 500:
                    wrong.append(f"{method} {path} as {who}: {status}, needs {level.name}")
            stranger = world.call("bio-admin", method, path).status_code
            if "{project}" in route.path and stranger != 404:
                wrong.append(f"{method} {path} as another project's admin: {stranger}, not 404")
    assert wrong == []


@pytest.mark.parametrize(
    "path", ["/api/v1/projects/astro", "/api/v1/projects/no-such", "/api/v1/projects/Astro"]
)
def test_a_foreign_project_looks_exactly_like_one_that_does_not_exist(world: World, path: str) -> None:
    answer = world.call("bio-admin", "GET", path)
    assert answer.status_code == 404
    name = path.rsplit("/", 1)[1]
    assert answer.json()["detail"] == f"no project {name!r}, or not yours: `easel projects ls` lists yours"


def test_metrics_need_a_platform_admin(world: World) -> None:
    assert world.call(None, "GET", "/metrics").status_code == 401
    assert world.call("astro-admin", "GET", "/metrics").status_code == 403
    text = world.call("root", "GET", "/metrics").text
    assert 'easel_requests_total{method="GET",route="/metrics",status="401"} 1.0' in text
    assert "astro" not in text  # routes are templates: no names of projects leak


def test_streams_refuse_strangers(world: World) -> None:
    path = "/api/v1/projects/astro/events/stream"
    assert world.call(None, "GET", path).status_code == 401
    assert world.call("bio-admin", "GET", path).status_code == 404
    assert world.call("astro-admin", "GET", "/api/v1/events/stream").status_code == 403
