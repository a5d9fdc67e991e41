"""What the pages of jobs, of the pool and of the lake ask for beyond the lists: rows, links, shares, downloads."""

from __future__ import annotations

import io
import zipfile
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import update
from tests.serve.conftest import World

from easel.lake.digest import digest_of
from easel.store import billing, job_logs, studies
from easel.store.engine import Store
from easel.store.schema.jobs import job_queues, jobs

P = "/api/v1/projects/astro"
WHO = "astro-member"


def submit(world: World, name: str, project: str = "astro", **tags: Any) -> str:
    body = {"name": name, "run": {"kind": "command", "argv": ["true"]}, "tags": tags}
    made = world.call(f"{project}-member", "POST", f"/api/v1/projects/{project}/jobs", json=body)
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def rows(world: World, **query: Any) -> list[dict[str, Any]]:
    found = world.call(WHO, "GET", f"{P}/jobs/table", params=query)
    assert found.status_code == 200, found.text
    items: list[dict[str, Any]] = found.json()["items"]
    return items


def test_the_table_has_tags_and_costs_and_sorts_filters_and_pages_by_them(
    world: World, sqlite_store: Store
) -> None:
    ids = [submit(world, name, accuracy=accuracy) for name, accuracy in (("a", 0.5), ("b", 0.9), ("c", 0.7))]
    plain = submit(world, "plain")
    with sqlite_store.write() as tx:
        line = {
            "attempt": 1,
            "line": 0,
            "project_id": tx.execute(jobs.select()).first().project_id,  # type: ignore[union-attr]
            "user_id": "u",
            "app": "",
            "month": "2026-11",
            "start": datetime(2026, 11, 1, tzinfo=UTC),
            "seconds": 1.0,
            "per_hour": 1.0,
            "currency": "USD",
            "book": "b",
        }
        billing.add_lines(
            tx, [{**line, "job_id": ids[0], "micros": 5}, {**line, "job_id": ids[2], "micros": 9}]
        )
    by_accuracy = rows(world, sort="-accuracy")
    assert [row["job"]["name"] for row in by_accuracy] == ["b", "c", "a", "plain"], "without it: last"
    assert by_accuracy[0]["tags"] == {"accuracy": 0.9}
    assert by_accuracy[0]["job"]["user"] == WHO
    assert [row["cost"] for row in rows(world, sort="-cost")] == [9e-6, 5e-6, None, None]
    assert {row["job"]["id"] for row in rows(world, where="accuracy > 0.6")} == {ids[1], ids[2]}
    assert [row["job"]["id"] for row in rows(world, filter="name:eq:plain")] == [plain]
    first = world.call(WHO, "GET", f"{P}/jobs/table", params={"sort": "accuracy", "limit": 3}).json()
    rest = rows(world, sort="accuracy", limit=3, cursor=first["next_cursor"])
    assert [row["job"]["name"] for row in (*first["items"], *rest)] == ["a", "c", "b", "plain"]
    refused = world.call(WHO, "GET", f"{P}/jobs/table", params={"sort": "accuracy", "cursor": "x"})
    assert refused.status_code == 422


def test_the_table_shows_nothing_of_another_project(world: World) -> None:
    submit(world, "theirs", project="bio", accuracy=1.0)
    assert rows(world, sort="-accuracy") == []
    assert world.call(WHO, "GET", "/api/v1/projects/bio/jobs/table").status_code == 404


def test_the_pool_counts_others_without_naming_them(world: World, sqlite_store: Store) -> None:
    mine, theirs = submit(world, "mine"), submit(world, "theirs", project="bio")
    submit(world, "waits", project="bio")
    with sqlite_store.write() as tx:
        held = {"state": "running", "device": "box", "held_at": tx.now}
        tx.execute(update(jobs).where(jobs.c.id.in_([mine, theirs])).values(**held))
    found = world.call(WHO, "GET", f"{P}/pool")
    [device] = found.json()["items"]
    assert device["device"] == "box"
    assert device["mine"] == device["others"] == {"jobs": 1, "vcpu": 1.0, "memory_mb": 1024.0, "gpus": 0.0}
    assert (found.json()["waiting"], found.json()["waiting_others"]) == (0, 1)
    assert "bio" not in found.text
    assert theirs not in found.text


def test_a_job_of_a_paused_queue_does_not_wait_for_room(world: World, sqlite_store: Store) -> None:
    submit(world, "held back")
    assert world.call(WHO, "GET", f"{P}/pool").json()["waiting"] == 1
    with sqlite_store.write() as tx:
        tx.execute(update(job_queues).values(paused=True))
    assert world.call(WHO, "GET", f"{P}/pool").json()["waiting"] == 0


def test_a_job_links_to_the_study_whose_point_it_is(world: World, sqlite_store: Store) -> None:
    study = {
        "name": "tuning",
        "job": {"run": {"kind": "command", "argv": ["echo", "{a}"]}},
        "space": {"dimensions": [{"name": "a", "type": "float", "low": 0, "high": 1}]},
        "goal": {"maximise": "x", "budget": {"count": 2}},
        "start": False,
    }
    made = world.call(WHO, "POST", f"{P}/studies", json=study).json()
    job = submit(world, "point")
    with sqlite_store.write() as tx:
        studies.add_point(tx, made["id"], 7, {"a": 0.5}, job, {})  # type: ignore[arg-type]
    links = world.call(WHO, "GET", f"{P}/jobs/{job}/links").json()
    assert links == {
        "apps": [],
        "study": {"study": "tuning", "number": 7, "point": {"a": 0.5}},
        "pipeline": None,
        "profile": None,
    }
    assert world.call("bio-member", "GET", f"/api/v1/projects/bio/jobs/{job}/links").status_code == 404


def test_a_failed_job_says_the_last_line_of_its_traceback_and_its_log_is_saved_as_text(
    world: World, sqlite_store: Store
) -> None:
    job = submit(world, "broken")
    with sqlite_store.write() as tx:
        for number, (stream, text) in enumerate(
            [("out", "begun\n"), ("err", "Traceback (most recent call last):\n  …\nValueError: no data\n")]
        ):
            lines = text.count("\n")
            chunk = job_logs.LogChunk(job, 1, number, number, lines, stream, tx.now, text.encode())  # type: ignore[arg-type]
            job_logs.add_chunks(tx, [chunk])
        tx.execute(update(jobs).where(jobs.c.id == job).values(state="failed", attempt=1))
    assert world.call(WHO, "GET", f"{P}/jobs/{job}").json()["last_line"] == "ValueError: no data"
    saved = world.call(WHO, "GET", f"{P}/jobs/{job}/log/text")
    assert saved.text.splitlines()[0] == "begun"
    assert saved.text.endswith("ValueError: no data\n")
    assert f'filename="{job}.log"' in saved.headers["content-disposition"]
    timed = world.call(WHO, "GET", f"{P}/jobs/{job}/log/text", params={"times": True}).text
    assert " err ValueError: no data" in timed
    assert world.call("bio-member", "GET", f"/api/v1/projects/bio/jobs/{job}/log/text").status_code == 404


def test_a_platform_admin_has_a_name_in_the_history(world: World) -> None:
    name = world.call("root", "GET", "/api/v1/me").json()["user"]["name"]
    events = world.call(WHO, "GET", f"{P}/events").json()["items"]
    assert name in {event["actor_name"] for event in events}


def test_events_of_jobs_and_apps_carry_their_names(world: World) -> None:
    body = {"name": "clean the stars", "run": {"kind": "command", "argv": ["true"]}}
    job = world.call(WHO, "POST", f"{P}/jobs", json=body).json()["id"]
    events = world.call(WHO, "GET", f"{P}/events").json()["items"]
    assert {each["subject_name"] for each in events if each["subject"] == job} == {"clean the stars"}
    program = "{input: {[Tensor[2]], []}, output: {[Tensor[2]], []}}"
    app = world.call(WHO, "POST", f"{P}/apps", json={"name": "flowers", "program": program}).json()["id"]
    events = world.call(WHO, "GET", f"{P}/events").json()["items"]
    assert {each["subject_name"] for each in events if each["subject"] == app} == {"flowers"}


def upload(world: World, files: dict[str, bytes]) -> None:
    session = world.call(WHO, "POST", f"{P}/uploads", json={}).json()["id"]
    hashes = {path: digest_of(data).hex() for path, data in files.items()}
    sizes = [{"path": path, "size": len(data), "hash": hashes[path]} for path, data in files.items()]
    world.call(WHO, "POST", f"{P}/uploads/{session}/files", json={"files": sizes})
    for path, data in files.items():
        given = {"objects": [{"hash": hashes[path], "size": len(data), "members": []}]}
        sent = world.call(WHO, "POST", f"{P}/uploads/{session}/objects", json=given).json()
        for part in sent["transfers"][0]["parts"]:
            assert world.http.put(part["url"], content=data).status_code == 204
        world.call(WHO, "POST", f"{P}/uploads/{session}/objects/{hashes[path]}/finish")
    assert world.call(WHO, "POST", f"{P}/uploads/{session}/commit").status_code == 200


def test_files_are_saved_by_name_and_sets_as_a_zip(world: World) -> None:
    upload(world, {"/stars/ä.csv": b"a,b\n", "/stars/deep/b.bin": bytes(range(256)) * 100})
    world.call(WHO, "POST", f"{P}/filesets", json={"name": "sky", "sources": ["/stars/"]})
    one = world.call(WHO, "GET", f"{P}/files/content", params={"ref": "/stars/ä.csv:1"})
    assert one.content == b"a,b\n"
    assert "filename*=UTF-8''%C3%A4.csv" in one.headers["content-disposition"]
    packed = world.call(WHO, "GET", f"{P}/files/zip", params={"ref": "/@sky:1"})
    assert 'filename="sky:1.zip"' in packed.headers["content-disposition"]
    with zipfile.ZipFile(io.BytesIO(packed.content)) as found:
        assert found.testzip() is None
        assert {each: found.read(each) for each in found.namelist()} == {
            "stars/ä.csv": b"a,b\n",
            "stars/deep/b.bin": bytes(range(256)) * 100,
        }
    assert world.call(WHO, "GET", f"{P}/files/content", params={"ref": "/stars/"}).status_code == 422
    assert world.call(WHO, "GET", f"{P}/files/zip", params={"ref": "/@nothing:1"}).status_code == 404
    assert world.call(WHO, "GET", f"{P}/files/zip", params={"ref": "/empty/"}).status_code == 404
