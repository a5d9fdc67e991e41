"""What a device's GPUs are, how busy they are and who holds them, as `easel devices` and the pages ask for it."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import update
from tests.serve.conftest import World

from easel.cli.queues import gpus_of
from easel.declare.resources import Room
from easel.store import devices
from easel.store.engine import Store
from easel.store.schema.jobs import jobs
from easel.wire.pool import Device

USE = "37% busy, 1024 of 143771 MB"
NOTES = {"gpu": "NVIDIA H200", "gpu_mb": "143771", "gpu 0": USE}


def listed(world: World) -> list[dict[str, Any]]:
    found = world.call("astro-member", "GET", "/api/v1/devices")
    assert found.status_code == 200, found.text
    items: list[dict[str, Any]] = found.json()["items"]
    return items


def submitted(world: World, gpus: float) -> Any:
    body = {"name": "net", "run": {"kind": "command", "argv": ["true"]}, "resources": {"gpus": gpus}}
    return world.call("astro-member", "POST", "/api/v1/projects/astro/jobs", json=body)


def there(store: Store, notes: dict[str, str]) -> None:
    with store.write() as tx:
        devices.seen(tx, "box", "local", Room(4.0, 64_000, (1.0,)), notes)


def test_a_device_tells_its_gpus_their_use_and_what_jobs_hold_of_them(
    world: World, sqlite_store: Store
) -> None:
    there(sqlite_store, NOTES)
    [free] = listed(world)
    assert (free["gpus"], free["gpu_kind"], free["gpu_memory_mb"]) == (1, "NVIDIA H200", 143771)
    assert (free["gpus_held"], free["gpu_jobs"]) == (0.0, 0)
    assert gpus_of(Device.model_validate(free)) == f"1 NVIDIA H200; {USE}"
    made = submitted(world, 0.5)
    assert made.status_code == 201, made.text
    with sqlite_store.write() as tx:
        held = {"state": "running", "device": "box", "held_at": tx.now}
        tx.execute(update(jobs).where(jobs.c.id == made.json()["id"]).values(**held))
    [device] = listed(world)
    assert device["gpu_use"] == [{"number": 0, "use": USE}]
    assert gpus_of(Device.model_validate(device)) == f"1 NVIDIA H200, 0.5 held by 1 job; {USE}"


def test_a_driver_that_is_away_is_told_in_place_of_its_use(world: World, sqlite_store: Store) -> None:
    fault = "the driver does not answer: nvidia-smi failed"
    there(sqlite_store, {**NOTES, "gpu fault": fault})
    [device] = listed(world)
    assert device["gpu_fault"] == fault
    assert gpus_of(Device.model_validate(device)) == f"1 NVIDIA H200: {fault}"


@pytest.mark.parametrize("gpus", [1.5, -0.25])
def test_a_share_that_cannot_be_is_refused_in_words(world: World, sqlite_store: Store, gpus: float) -> None:
    there(sqlite_store, NOTES)
    refused = submitted(world, gpus)
    assert refused.status_code == 422
    assert "gpus" in refused.text


def test_more_gpus_than_any_device_has_are_refused_in_words(world: World, sqlite_store: Store) -> None:
    there(sqlite_store, NOTES)
    refused = submitted(world, 2.0)
    assert refused.status_code in (409, 422), refused.text
    assert "GPU" in refused.text
