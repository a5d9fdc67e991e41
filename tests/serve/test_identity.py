"""What people may do with projects, users and tokens."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.serve.conftest import World


def test_a_token_is_shown_once_and_never_again(world: World) -> None:
    made = world.call("astro-member", "POST", "/api/v1/tokens", json={"name": "laptop"})
    secret = made.json()["secret"]
    assert len(secret) >= 43
    listed = world.call("astro-member", "GET", "/api/v1/tokens").text
    assert secret not in listed
    assert "secret" not in listed


def test_a_revoked_token_stops_at_once_and_takes_its_sessions_along(world: World) -> None:
    made = world.call("astro-member", "POST", "/api/v1/tokens", json={"name": "browser"}).json()
    world.tokens["temp"] = made["secret"]
    assert world.http.post("/api/v1/session", json={"token": made["secret"]}).status_code == 200
    assert world.http.get("/api/v1/me").status_code == 200  # by cookie
    assert world.call("temp", "DELETE", f"/api/v1/tokens/{made['id']}").status_code == 204
    assert world.call("temp", "GET", "/api/v1/me").status_code == 401
    assert world.http.get("/api/v1/me").status_code == 401


def test_an_expired_token_does_not_work_and_one_born_expired_is_refused(world: World) -> None:
    past = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    answer = world.call("root", "POST", "/api/v1/tokens", json={"name": "x", "expires_at": past})
    assert answer.status_code == 422
    assert "past" in answer.json()["detail"]


def test_nobody_can_revoke_or_see_the_tokens_of_others(world: World) -> None:
    theirs = world.call("astro-admin", "GET", "/api/v1/tokens").json()["items"][0]["id"]
    assert world.call("astro-member", "DELETE", f"/api/v1/tokens/{theirs}").status_code == 404
    assert world.call("astro-admin", "GET", "/api/v1/me").status_code == 200


def test_a_project_admin_cannot_mint_a_way_into_another_project(world: World) -> None:
    """A user of two projects: a token made by one project's admin would open the other."""
    member = world.call("root", "GET", "/api/v1/projects/astro/users/astro-member").json()
    admitted = world.call(
        "root", "POST", "/api/v1/projects/bio/users/admit", json={"user_id": member["id"], "role": "member"}
    )
    assert admitted.status_code == 201
    for project in ("astro", "bio"):
        path = f"/api/v1/projects/{project}/users/astro-member/tokens"
        assert world.call(f"{project}-admin", "POST", path, json={"name": "sneaky"}).status_code == 403
        assert world.call("root", "POST", path, json={"name": "fine"}).status_code == 201


def test_the_last_admin_cannot_leave_or_step_down(world: World) -> None:
    path = "/api/v1/projects/astro/users/astro-admin"
    assert world.call("astro-admin", "DELETE", path).status_code == 409
    assert world.call("astro-admin", "PATCH", path, json={"role": "member"}).status_code == 409
    promote = world.call(
        "astro-admin", "PATCH", "/api/v1/projects/astro/users/astro-member", json={"role": "admin"}
    )
    assert promote.status_code == 200
    assert world.call("astro-admin", "DELETE", path).status_code == 204
    assert world.call("astro-admin", "GET", "/api/v1/projects/astro").status_code == 404


def test_a_retried_create_answers_the_same_and_makes_one(world: World) -> None:
    first, again = (
        world.call(
            "root", "POST", "/api/v1/projects", json={"name": "chem"}, headers={"Idempotency-Key": "k1"}
        )
        for _ in range(2)
    )
    assert first.json() == again.json()
    assert again.headers["Idempotency-Replayed"] == "true"
    other = world.call(
        "root", "POST", "/api/v1/projects", json={"name": "geo"}, headers={"Idempotency-Key": "k1"}
    )
    assert other.status_code == 409


def test_a_retried_token_is_the_same_token_without_its_secret(world: World) -> None:
    first, again = (
        world.call("root", "POST", "/api/v1/tokens", json={"name": "t"}, headers={"Idempotency-Key": "k"})
        for _ in range(2)
    )
    assert first.json()["id"] == again.json()["id"]
    assert again.json()["secret"] is None


def test_two_users_may_use_the_same_idempotency_key(world: World) -> None:
    for who in ("astro-member", "bio-member"):
        answer = world.call(
            who, "POST", "/api/v1/tokens", json={"name": who}, headers={"Idempotency-Key": "same"}
        )
        assert answer.status_code == 201
        assert answer.json()["name"] == who


def test_a_session_cookie_cannot_change_anything_without_the_csrf_header(world: World) -> None:
    opened = world.http.post("/api/v1/session", json={"token": world.tokens["root"]})
    cookie = opened.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    body = {"name": "forged"}
    assert world.http.post("/api/v1/projects", json=body).status_code == 403
    wrong = {"X-CSRF-Token": "0" * 64}
    assert world.http.post("/api/v1/projects", json=body, headers=wrong).status_code == 403
    right = {"X-CSRF-Token": opened.json()["csrf_token"]}
    assert world.http.post("/api/v1/projects", json=body, headers=right).status_code == 201
    assert world.http.delete("/api/v1/session", headers=right).status_code == 204
    assert world.http.get("/api/v1/me").status_code == 401


def test_many_wrong_tokens_must_wait_but_a_right_one_still_passes(world: World) -> None:
    statuses = [
        world.http.get("/api/v1/me", headers={"Authorization": f"Bearer guess{i}"}).status_code
        for i in range(7)
    ]
    assert statuses == [401] * 5 + [429] * 2
    blocked = world.http.post("/api/v1/session", json={"token": "guess"})
    assert blocked.status_code == 429
    assert int(blocked.headers["Retry-After"]) > 0
    assert world.call("root", "GET", "/api/v1/me").status_code == 200


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "a/../b",
        "a..b",
        "",
        " ",
        "a\x00b",
        "a\nb",
        "a" * 65,
        "%2e%2e",
        "ünïcode",
        "a.",
        "a/b",
        "a\\b",
        "‮x",
    ],
)
def test_hostile_names_are_refused_and_nothing_is_stored(world: World, name: str) -> None:
    before = world.call("root", "GET", "/api/v1/projects").json()
    for path in ("/api/v1/projects", "/api/v1/projects/astro/users"):
        answer = world.call("root", "POST", path, json={"name": name})
        assert answer.status_code == 422
        assert answer.headers["content-type"] == "application/problem+json"
    assert world.call("root", "GET", "/api/v1/projects").json() == before


@pytest.mark.parametrize("name", ["../x", "a\x00b", "a\nb", "a" * 101, "", "  "])
def test_hostile_token_names_are_refused(world: World, name: str) -> None:
    assert world.call("root", "POST", "/api/v1/tokens", json={"name": name}).status_code == 422


def test_a_token_may_be_named_in_any_script(world: World) -> None:
    answer = world.call("root", "POST", "/api/v1/tokens", json={"name": "ноутбук 笔记本"})
    assert answer.json()["name"] == "ноутбук 笔记本"
