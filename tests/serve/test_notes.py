"""Notes on jobs, models and files: who may read, write and remove them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.serve.conftest import World

NOTES = "/api/v1/projects/astro/notes"


@pytest.fixture
def job(world: World) -> str:
    body = {"run": {"kind": "command", "argv": ["true"]}}
    made = world.call("astro-admin", "POST", "/api/v1/projects/astro/jobs", json=body)
    assert made.status_code == 201, made.text
    found: str = made.json()["id"]
    return found


def write(world: World, who: str, ref: str, text: str, kind: str = "job") -> Any:
    return world.call(who, "POST", NOTES, json={"kind": kind, "ref": ref, "text": text})


def texts(world: World, who: str, ref: str) -> list[tuple[str, str]]:
    found = world.call(who, "GET", NOTES, params={"kind": "job", "ref": ref})
    assert found.status_code == 200, found.text
    return [(note["user"], note["text"]) for note in found.json()["items"]]


def test_members_write_notes_on_a_job_and_read_each_others(world: World, job: str) -> None:
    assert write(world, "astro-member", job, " looks odd \n").status_code == 201
    assert write(world, "astro-admin", job[-8:], "agreed").status_code == 201  # the end of its id will do
    assert texts(world, "astro-member", job) == [("astro-member", "looks odd"), ("astro-admin", "agreed")]


def test_other_projects_learn_nothing_of_them(world: World, job: str) -> None:
    write(world, "astro-member", job, "secret")
    assert world.call("bio-member", "GET", NOTES, params={"kind": "job", "ref": job}).status_code == 404
    there = NOTES.replace("astro", "bio")
    assert world.call("bio-member", "GET", there, params={"kind": "job", "ref": job}).status_code == 404


def test_a_note_is_removed_by_its_writer_or_an_admin_and_by_nobody_else(world: World, job: str) -> None:
    def remove(who: str, note: str) -> int:
        asked = {"kind": "job", "ref": job}
        answer = world.call(who, "DELETE", f"{NOTES}/{note}", params=asked)
        return int(answer.status_code)

    of_admin = write(world, "astro-admin", job, "keep this").json()["id"]
    of_member = write(world, "astro-member", job, "mine").json()["id"]
    assert remove("astro-member", of_admin) == 403
    assert remove("astro-member", of_member) == 204
    assert remove("astro-member", of_member) == 404
    assert remove("astro-admin", of_admin) == 204
    assert texts(world, "astro-member", job) == []


def test_empty_notes_and_notes_on_nothing_are_refused(world: World, job: str) -> None:
    assert write(world, "astro-member", job, "  \n ").status_code == 422
    assert write(world, "astro-member", "job_01m7p9mpn530adxntt1ev1a5r9", "x").status_code == 404
    assert write(world, "astro-member", "digits-model:1", "x", kind="fileset").status_code == 404


def test_what_is_written_and_removed_is_in_the_history_without_its_text(world: World, job: str) -> None:
    note = write(world, "astro-member", job, "private remark").json()["id"]
    world.call("astro-member", "DELETE", f"{NOTES}/{note}", params={"kind": "job", "ref": job})
    found = world.call("astro-admin", "GET", "/api/v1/projects/astro/events").json()["items"]
    told = [one for one in found if one["kind"].startswith("note.")]
    assert sorted(one["kind"] for one in told) == ["note.removed", "note.written"]
    assert "private remark" not in str(told)
