"""Bad requests, and the shape of every answer."""

from __future__ import annotations

import json

import pytest
from tests.serve.conftest import World


def test_malformed_json_is_a_400_problem(world: World) -> None:
    answer = world.call(
        "root", "POST", "/api/v1/projects", content=b'{"name": ', headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 400
    problem = answer.json()
    assert problem["kind"] == "unreadable"
    assert problem["request_id"] == answer.headers["x-request-id"]


def test_an_unknown_field_is_named(world: World) -> None:
    answer = world.call("root", "POST", "/api/v1/projects", json={"name": "ok", "colour": "red"})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["where"] == "body.colour"


@pytest.mark.parametrize("announced", [True, False])
def test_ten_megabytes_are_refused_whether_announced_or_not(world: World, announced: bool) -> None:
    body = json.dumps({"name": "x", "description": "y" * 10_000_000}).encode()
    content = body if announced else (body[i : i + 65536] for i in range(0, len(body), 65536))
    answer = world.call(
        "root", "POST", "/api/v1/projects", content=content, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 413
    assert answer.json()["kind"] == "too-large"


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=501", "limit=x", "cursor=%00", "cursor=zzz", "sort=secret_hash", "filter=name",
     "filter=name:like:x", "filter=created_at:lt:yesterday"],
)  # fmt: skip
def test_bad_paging_is_explained(world: World, query: str) -> None:
    answer = world.call("root", "GET", f"/api/v1/projects?{query}")
    assert answer.status_code == 422
    assert len(answer.json()["detail"]) > 10


def test_an_unknown_path_says_where_the_api_is(world: World) -> None:
    answer = world.call(None, "GET", "/api/v2/nothing")
    assert answer.status_code == 404
    assert "/api/v1" in answer.json()["detail"]


def test_a_request_id_is_echoed_unless_it_could_forge_a_log_line(world: World) -> None:
    assert (
        world.call(None, "GET", "/healthz", headers={"X-Request-ID": "abc-1"}).headers["x-request-id"]
        == "abc-1"
    )
    forged = world.call(None, "GET", "/healthz", headers={"X-Request-ID": 'a" level="error'})
    assert forged.headers["x-request-id"] != 'a" level="error'


def test_answers_forbid_framing_and_sniffing(world: World) -> None:
    headers = world.call(None, "GET", "/healthz").headers
    assert headers["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


def test_readiness_follows_the_schema(world: World) -> None:
    assert world.call(None, "GET", "/readyz").status_code == 200


BEFORE_LOG_IN = {
    "/api/v1/session",
    "/api/v1/sign-on",
    "/api/v1/sign-on/{provider}/start",
    "/api/v1/sign-on/{provider}/callback",
    "/api/v1/sign-on/{provider}/password",
    "/api/v1/invitations/accept",
}
"""What people call who are not logged in yet."""


def test_every_operation_is_documented_with_its_errors_and_its_security(world: World) -> None:
    document = world.call(None, "GET", "/api/openapi.json").json()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert operation.get("description"), f"{method} {path} has no description"
            content = operation["responses"]["default"]["content"]
            assert list(content) == ["application/problem+json"]
            if path.startswith("/api/v1") and path not in BEFORE_LOG_IN:
                assert "security" in operation, f"{method} {path}"
    ids = [o["operationId"] for p in document["paths"].values() for o in p.values()]
    assert len(ids) == len(set(ids))
