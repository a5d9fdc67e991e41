"""Programs with tokens of their own, and tokens that may do less than their user."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.serve.conftest import World
from tests.serve.test_people import ASTRO, JOB, ok

ACCOUNTS = f"{ASTRO}/service-accounts"


@pytest.fixture
def robot(world: World) -> World:
    ok(world.call("astro-admin", "POST", ACCOUNTS, json={"name": "ci", "role": "admin"}), 201)
    return world


def token(world: World, name: str, **fields: object) -> str:
    made = world.call("astro-admin", "POST", f"{ACCOUNTS}/ci/tokens", json={"name": name, **fields})
    world.tokens[name] = ok(made, 201)["secret"]
    return str(made.json()["id"])


def test_a_token_does_its_verbs_and_no_others(robot: World) -> None:
    token(robot, "reader", verbs=["read"])
    token(robot, "runner", verbs=["read", "run"])
    ok(robot.call("reader", "GET", f"{ASTRO}/jobs"))
    ok(robot.call("reader", "POST", f"{ASTRO}/find", json={"kind": "file"}))
    refused = robot.call("reader", "POST", f"{ASTRO}/jobs", json=JOB)
    assert refused.status_code == 403
    assert "may only read" in refused.json()["detail"]
    ok(robot.call("runner", "POST", f"{ASTRO}/jobs", json=JOB), 201)
    assert robot.call("runner", "POST", f"{ASTRO}/uploads", json={}).status_code == 403
    assert robot.call("runner", "POST", f"{ASTRO}/users", json={"name": "x"}).status_code == 403


def test_a_narrow_token_makes_no_wider_one(robot: World) -> None:
    token(robot, "manager", verbs=["read", "manage"])
    assert (
        robot.call(
            "manager", "POST", f"{ACCOUNTS}/ci/tokens", json={"name": "x", "verbs": ["run"]}
        ).status_code
        == 403
    )
    assert robot.call("manager", "POST", "/api/v1/tokens", json={"name": "x"}).status_code == 403
    made = robot.call("manager", "POST", f"{ASTRO}/users/astro-member/tokens", json={"name": "x"})
    assert ok(made, 201)["scope"]["verbs"] == ["manage", "read"]


def test_a_token_for_one_project_does_not_see_another(robot: World) -> None:
    account = ok(robot.call("astro-admin", "GET", ACCOUNTS))["items"][0]
    ok(robot.call("root", "POST", "/api/v1/projects/bio/users/admit", json={"user_id": account["id"]}), 201)
    made = robot.call(
        "root", "POST", f"{ACCOUNTS}/ci/tokens", json={"name": "both", "projects": ["astro", "bio"]}
    )
    robot.tokens["both"] = ok(made, 201)["secret"]
    one = robot.call("root", "POST", f"{ACCOUNTS}/ci/tokens", json={"name": "one"})
    robot.tokens["one"] = ok(one, 201)["secret"]
    ok(robot.call("both", "GET", "/api/v1/projects/bio"))
    assert robot.call("one", "GET", "/api/v1/projects/bio").status_code == 404
    assert [each["name"] for each in ok(robot.call("one", "GET", "/api/v1/projects"))["items"]] == ["astro"]
    assert robot.call("astro-admin", "POST", f"{ACCOUNTS}/ci/tokens", json={"name": "x"}).status_code == 403


def test_rotation_gives_a_like_token_and_the_old_one_ends(robot: World) -> None:
    old = token(robot, "old", verbs=["read"], days=30)
    path = f"{ACCOUNTS}/ci/tokens/{old}/rotate"
    new = ok(robot.call("astro-admin", "POST", path, json={"overlap_hours": 1}), 201)
    robot.tokens["new"] = new["secret"]
    assert new["scope"]["verbs"] == ["read"]
    ok(robot.call("old", "GET", ASTRO))
    ok(robot.call("new", "GET", ASTRO))
    tokens = {
        each["id"]: each for each in ok(robot.call("astro-admin", "GET", ACCOUNTS))["items"][0]["tokens"]
    }
    until = datetime.fromisoformat(tokens[old]["expires_at"])
    assert until < datetime.now(UTC) + timedelta(hours=1, minutes=1)
    assert tokens[new["id"]]["last_used_at"] is not None
    ok(robot.call("astro-admin", "POST", path, json={"overlap_hours": 0}), 201)
    assert robot.call("old", "GET", ASTRO).status_code == 401


def test_a_program_opens_no_session_and_joins_nothing(robot: World) -> None:
    token(robot, "robot", verbs=["read", "write", "run", "manage"])
    assert robot.http.post("/api/v1/session", json={"token": robot.tokens["robot"]}).status_code == 403
    assert robot.call("robot", "POST", "/api/v1/invitations/join", json={"code": "x"}).status_code == 403


def test_accounts_of_other_projects_do_not_exist(robot: World) -> None:
    made = token(robot, "mine")
    theirs = "/api/v1/projects/bio/service-accounts/ci/tokens"
    assert robot.call("bio-admin", "POST", theirs, json={"name": "x"}).status_code == 404
    assert robot.call("bio-admin", "DELETE", f"{theirs}/{made}").status_code == 404
    assert (
        robot.call("astro-admin", "POST", f"{ACCOUNTS}/astro-member/tokens", json={"name": "x"}).status_code
        == 404
    )
    ok(robot.call("astro-admin", "DELETE", f"{ACCOUNTS}/ci/tokens/{made}"), 204)
    assert robot.call("mine", "GET", ASTRO).status_code == 401


def test_a_person_makes_a_token_that_may_do_less(world: World) -> None:
    made = world.call("astro-member", "POST", "/api/v1/tokens", json={"name": "nb", "verbs": ["read"]})
    world.tokens["nb"] = ok(made, 201)["secret"]
    ok(world.call("nb", "GET", f"{ASTRO}/jobs"))
    assert world.call("nb", "POST", f"{ASTRO}/jobs", json=JOB).status_code == 403
    assert world.call("nb", "POST", "/api/v1/tokens", json={"name": "wide"}).status_code == 403


def test_a_program_gets_no_token_without_an_end_but_rotates_its_own(robot: World) -> None:
    old = token(robot, "manager", verbs=["read", "manage"], days=30)
    made = robot.call("manager", "POST", f"{ASTRO}/users/ci/tokens", json={"name": "x"})
    assert made.status_code == 403
    assert "service-accounts" in made.json()["detail"]
    mine = {each["id"]: each for each in ok(robot.call("astro-admin", "GET", ACCOUNTS))["items"][0]["tokens"]}
    rotated = ok(robot.call("manager", "POST", f"{ACCOUNTS}/ci/tokens/{old}/rotate", json={}), 201)
    assert rotated["expires_at"] > mine[old]["expires_at"]
