"""People come and go: disabled users, invitations, projects that are archived and deleted."""

from __future__ import annotations

import io
import json
import tarfile
from typing import Any

import pytest
from sqlalchemy import String, Text, func, select
from tests.serve.conftest import World

from easel.store import schema
from easel.store.engine import Store

ASTRO = "/api/v1/projects/astro"
JOB = {"name": "wait", "run": {"kind": "command", "argv": ["true"]}}


def ok(answer: Any, status: int = 200) -> Any:
    assert answer.status_code == status, answer.text
    return answer.json() if answer.content else None


def submit(world: World, who: str, project: str = "astro") -> str:
    made = ok(world.call(who, "POST", f"/api/v1/projects/{project}/jobs", json=JOB), 201)
    return str(made["id"])


def put_file(world: World, who: str, path: str, data: bytes) -> None:
    """Upload one file over the API, as any client does."""
    from easel.lake.digest import digest_of

    digest = digest_of(data).hex()
    upload = ok(world.call(who, "POST", f"{ASTRO}/uploads", json={}), 201)["id"]
    file = {"path": path, "size": len(data), "hash": digest}
    ok(world.call(who, "POST", f"{ASTRO}/uploads/{upload}/files", json={"files": [file]}))
    new = {"hash": digest, "size": len(data), "members": []}
    sent = ok(world.call(who, "POST", f"{ASTRO}/uploads/{upload}/objects", json={"objects": [new]}))
    for transfer in sent["transfers"]:
        for part in transfer["parts"]:
            assert world.http.put(part["url"], content=data).status_code == 204
    ok(world.call(who, "POST", f"{ASTRO}/uploads/{upload}/objects/{digest}/finish"), 204)
    ok(world.call(who, "POST", f"{ASTRO}/uploads/{upload}/commit"))


def test_a_disabled_user_is_out_at_once_and_their_waiting_jobs_end(world: World) -> None:
    job = submit(world, "astro-member")
    other = submit(world, "astro-admin")
    ok(world.http.post("/api/v1/session", json={"token": world.tokens["astro-member"]}))
    gone = ok(world.call("astro-admin", "POST", f"{ASTRO}/users/astro-member/disable", json={}))
    assert (gone["tokens"], gone["jobs"]) == (1, 1)
    assert world.call("astro-member", "GET", "/api/v1/me").status_code == 401
    assert world.http.get("/api/v1/me").status_code == 401  # the session's cookie
    assert ok(world.call("root", "GET", f"{ASTRO}/jobs/{job}"))["state"] == "killed"
    assert ok(world.call("root", "GET", f"{ASTRO}/jobs/{other}"))["state"] == "queued"
    listed = ok(world.call("astro-admin", "GET", f"{ASTRO}/users/astro-member"))
    assert listed["disabled_at"] is not None


def test_an_enabled_user_needs_a_new_token(world: World) -> None:
    ok(world.call("astro-admin", "POST", f"{ASTRO}/users/astro-member/disable", json={}))
    refused = world.call("astro-admin", "POST", f"{ASTRO}/users/astro-member/tokens", json={"name": "x"})
    ok(world.call("astro-admin", "POST", f"{ASTRO}/users/astro-member/enable"))
    assert world.call("astro-member", "GET", "/api/v1/me").status_code == 401
    made = world.call("astro-admin", "POST", f"{ASTRO}/users/astro-member/tokens", json={"name": "new"})
    world.tokens["back"] = ok(made, 201)["secret"]
    ok(world.call("back", "GET", ASTRO))
    assert refused.status_code == 201  # made while disabled, it opens nothing until they are enabled


def test_work_is_handed_over_with_its_rights(world: World) -> None:
    app = {"name": "digits", "program": "{input: {[Tensor[2]], []}, output: {[Tensor[1]], []}}"}
    made = world.call("astro-member", "POST", f"{ASTRO}/apps", json=app)
    assert made.status_code == 201, made.text
    grant = {
        "scope": "path",
        "pattern": "/private/",
        "principal": "user:astro-member",
        "read": True,
        "write": True,
    }
    ok(world.call("astro-admin", "PUT", f"{ASTRO}/grants", json=grant))
    body = {"hand_over_to": "astro-admin"}
    gone = ok(world.call("root", "POST", f"{ASTRO}/users/astro-member/disable", json=body))
    assert gone["handed_over"] == 1
    admin = ok(world.call("root", "GET", f"{ASTRO}/users/astro-admin"))["id"]
    events = ok(world.call("root", "GET", f"{ASTRO}/events?filter=kind:eq:app.changed"))["items"]
    assert events[0]["body"]["to"] == admin
    grants = ok(world.call("astro-admin", "GET", f"{ASTRO}/grants"))["items"]
    assert "user:astro-admin" in {each["principal"] for each in grants}


def test_a_project_admin_disables_nobody_who_is_elsewhere_too(world: World) -> None:
    member = ok(world.call("root", "GET", f"{ASTRO}/users/astro-member"))["id"]
    ok(world.call("root", "POST", "/api/v1/projects/bio/users/admit", json={"user_id": member}), 201)
    path = f"{ASTRO}/users/astro-member/disable"
    assert world.call("astro-admin", "POST", path, json={}).status_code == 403
    assert world.call("bio-admin", "POST", path, json={}).status_code == 404
    assert world.call("astro-admin", "POST", f"/api/v1/users/{member}/disable", json={}).status_code == 403
    ok(world.call("root", "POST", f"/api/v1/users/{member}/disable", json={}))
    people = ok(world.call("root", "GET", "/api/v1/users"))["items"]
    found = next(each for each in people if each["id"] == member)
    assert found["projects"] == ["astro", "bio"]
    assert found["disabled_at"]


def test_nobody_disables_themselves_nor_the_last_platform_admin(world: World) -> None:
    root = ok(world.call("root", "GET", "/api/v1/me"))["user"]["id"]
    assert world.call("root", "POST", f"/api/v1/users/{root}/disable", json={}).status_code == 409
    assert world.call("astro-admin", "POST", f"{ASTRO}/users/astro-admin/disable", json={}).status_code == 409


def test_an_invitation_works_once(world: World) -> None:
    made = ok(world.call("astro-admin", "POST", f"{ASTRO}/invitations", json={"role": "admin"}), 201)
    joined = ok(
        world.http.post("/api/v1/invitations/accept", json={"code": made["code"], "name": "eva"}), 201
    )
    assert (joined["project"], joined["member"]["role"]) == ("astro", "admin")
    world.tokens["eva"] = joined["token"]["secret"]
    ok(world.call("eva", "GET", ASTRO))
    again = world.http.post("/api/v1/invitations/accept", json={"code": made["code"], "name": "mallory"})
    assert again.status_code == 401
    listed = world.call("astro-admin", "GET", f"{ASTRO}/invitations")
    assert made["code"] not in listed.text
    assert listed.json()["items"][0]["user_id"] == joined["member"]["id"]


def test_somebody_with_an_account_joins_as_who_they_are(world: World) -> None:
    code = ok(world.call("astro-admin", "POST", f"{ASTRO}/invitations", json={}), 201)["code"]
    ok(world.call("bio-member", "POST", "/api/v1/invitations/join", json={"code": code}))
    ok(world.call("bio-member", "GET", ASTRO))
    assert world.call("bio-admin", "POST", "/api/v1/invitations/join", json={"code": code}).status_code == 401


def test_a_withdrawn_invitation_opens_nothing_and_others_do_not_see_it(world: World) -> None:
    made = ok(world.call("astro-admin", "POST", f"{ASTRO}/invitations", json={}), 201)
    path = f"/api/v1/projects/bio/invitations/{made['id']}"
    assert world.call("bio-admin", "DELETE", path).status_code == 404
    assert world.call("astro-member", "GET", f"{ASTRO}/invitations").status_code == 403
    ok(world.call("astro-admin", "DELETE", f"{ASTRO}/invitations/{made['id']}"), 204)
    refused = world.http.post("/api/v1/invitations/accept", json={"code": made["code"], "name": "eva"})
    assert refused.status_code == 401


def test_an_archived_project_can_only_be_read(world: World) -> None:
    job = submit(world, "astro-member")
    ok(world.call("astro-admin", "PATCH", ASTRO, json={"archived": True}))
    assert ok(world.call("astro-member", "GET", f"{ASTRO}/jobs/{job}"))["state"] == "killed"
    for method, path, body in (
        ("POST", "jobs", JOB),
        ("POST", "uploads", {}),
        ("POST", "users", {"name": "new"}),
        ("PUT", "term-limits", {}),
    ):
        answer = world.call("astro-admin", method, f"{ASTRO}/{path}", json=body)
        assert (answer.status_code, answer.json()["kind"]) == (409, "conflict"), path
        assert "archived" in answer.json()["detail"]
    ok(world.call("astro-member", "POST", f"{ASTRO}/find", json={"kind": "file"}))  # a POST that only reads
    assert world.call("astro-member", "PATCH", ASTRO, json={"archived": False}).status_code == 403
    ok(world.call("astro-admin", "PATCH", ASTRO, json={"archived": False}))
    submit(world, "astro-member")


def test_only_the_owner_ends_a_project_that_has_one(world: World) -> None:
    ok(world.call("astro-admin", "PATCH", ASTRO, json={"owner": "astro-member"}))
    member = ok(world.call("root", "GET", f"{ASTRO}/users/astro-member"))
    assert member["role"] == "admin"
    assert world.call("astro-admin", "PATCH", ASTRO, json={"archived": True}).status_code == 403
    assert world.call("astro-admin", "GET", f"{ASTRO}/export").status_code == 403
    assert world.call("astro-admin", "PATCH", ASTRO, json={"owner": "astro-admin"}).status_code == 403
    ok(world.call("astro-member", "PATCH", ASTRO, json={"archived": True}))


def test_a_project_is_deleted_only_archived_exported_and_confirmed(world: World, sqlite_store: Store) -> None:
    put_file(world, "astro-member", "/data/a.txt", b"stars")
    ok(
        world.call(
            "astro-member", "POST", f"{ASTRO}/filesets", json={"name": "night", "sources": ["/data/"]}
        ),
        201,
    )
    submit(world, "astro-member")
    project_id = ok(world.call("root", "GET", ASTRO))["id"]
    delete = f"{ASTRO}?confirm=astro"
    assert world.call("astro-admin", "DELETE", delete).status_code == 409  # in use
    ok(world.call("astro-admin", "PATCH", ASTRO, json={"archived": True}))
    assert world.call("astro-admin", "DELETE", delete).status_code == 409  # nobody has an export
    assert world.call("astro-admin", "DELETE", f"{ASTRO}?confirm=astor").status_code == 422

    content = world.call("astro-admin", "GET", f"{ASTRO}/export").content
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        members = {name: archive.extractfile(name) for name in archive.getnames()}
        kept = {name: file.read() for name, file in members.items() if file is not None}
    rows = [json.loads(line) for line in kept["project.jsonl"].splitlines()]
    sets = [json.loads(line) for line in kept["file_sets.jsonl"].splitlines()]
    assert {"jobs", "artifacts", "projects", "memberships"} <= {row["table"] for row in rows}
    assert sets[0]["name"] == "night:1"
    path, digest, size = sets[0]["files"][0]
    assert (path, size) == ("/data/a.txt", 5)
    assert kept[f"blobs/{digest}"] == b"stars"
    assert not [row for row in rows if "secret_hash" in row["row"]]

    ok(world.call("astro-admin", "DELETE", delete), 204)
    assert world.call("root", "GET", ASTRO).status_code == 404
    assert world.call("astro-member", "GET", "/api/v1/me").status_code == 401  # at home nowhere any more
    ok(world.call("bio-admin", "GET", "/api/v1/projects/bio"))
    assert rows_naming(sqlite_store, project_id) == {}
    ok(world.call("root", "POST", "/api/v1/projects", json={"name": "astro"}), 201)


def rows_naming(store: Store, project_id: str) -> dict[str, int]:
    """In which tables the project is still named; history and the audit may speak of it."""
    found = {}
    with store.read() as tx:
        for table in schema.metadata.sorted_tables:
            if table.name in ("events", "idempotency", "users") or table.name.startswith("audit"):
                continue
            for column in table.c:
                if isinstance(column.type, String | Text):
                    query = select(func.count()).select_from(table).where(column == project_id)
                    if count := tx.execute(query).scalar_one():
                        found[f"{table.name}.{column.name}"] = int(count)
    return found


@pytest.mark.parametrize(
    "table", ["job_logs", "app_examples", "file_set_versions", "upload_items", "study_points"]
)
def test_rows_that_name_a_project_only_through_others_are_removed_with_it(table: str) -> None:
    from easel.store.project_rows import tables

    names = [each.name for each in tables()]
    assert table in names
    assert names[-1] == "projects"
