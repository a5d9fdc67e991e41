"""What a waiting job's owner is told: why, from when, until when, and how often that comes true."""

from __future__ import annotations

from datetime import datetime

from tests.serve.conftest import World
from tests.serve.test_job_pages import WHO, P, submit

from easel.declare.resources import Room
from easel.flow.jobs.promises import PromiseKeeper
from easel.store import devices
from easel.store.engine import Store


def test_a_waiting_job_says_when_it_starts_and_ends(world: World, sqlite_store: Store) -> None:
    with sqlite_store.write() as tx:
        devices.seen(tx, "here", "local", Room(1.0, 4096), {})
    first, last = [submit(world, f"step {number}") for number in range(4)][::3]
    soon, later = (world.call(WHO, "GET", f"{P}/why/{job}").json() for job in (first, last))
    assert datetime.fromisoformat(soon["starts_at"]) < datetime.fromisoformat(later["starts_at"])
    assert later["starts_at"] <= later["starts_by"]
    assert later["starts_at"] < later["ends_by"]
    assert world.call("bio-member", "GET", f"{P}/why/{last}").status_code == 404


def test_nobody_is_told_a_start_where_no_device_could_run_it(world: World) -> None:
    found = world.call(WHO, "GET", f"{P}/why/{submit(world, 'alone')}").json()
    assert (found["starts_at"], found["ends_by"]) == (None, None)
    assert found["status"] == "no-device"


def test_promises_are_the_projects_own(world: World, sqlite_store: Store) -> None:
    with sqlite_store.write() as tx:
        devices.seen(tx, "here", "local", Room(1.0, 4096), {})
    submit(world, "mine")
    assert PromiseKeeper(sqlite_store, 8).turn() == 1
    for who, status in ((WHO, 200), ("bio-member", 404)):
        found = world.call(who, "GET", f"{P}/promises")
        assert found.status_code == status
    assert world.call(WHO, "GET", f"{P}/promises").json()["jobs"] == 0


def test_only_platform_admins_reserve_devices_and_others_do_not_learn_for_whom(
    world: World, sqlite_store: Store
) -> None:
    with sqlite_store.write() as tx:
        devices.seen(tx, "here", "local", Room(1.0, 4096), {})
    body = {"project": "astro", "start": "2098-12-01T00:00:00Z", "end": "2099-01-01T00:00:00Z"}
    path = "/api/v1/devices/here/reservations"
    for who in ("astro-admin", "astro-member"):
        assert world.call(who, "POST", path, json=body).status_code == 403
    made = world.call("root", "POST", path, json=body)
    assert made.status_code == 201, made.text
    for who, name in (("astro-member", "astro"), ("bio-member", None), ("root", "astro")):
        (found,) = world.call(who, "GET", "/api/v1/reservations").json()["items"]
        assert found["project"] == name
    cancel = f"/api/v1/reservations/{made.json()['id']}"
    assert world.call("astro-admin", "DELETE", cancel).status_code == 403
    assert world.call("root", "DELETE", cancel).status_code == 204
    assert world.call("root", "GET", "/api/v1/reservations").json()["items"] == []
