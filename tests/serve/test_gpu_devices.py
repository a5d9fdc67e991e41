"""What a device's GPUs are, how busy they are and who holds them, as `easel devices` and the pages ask for it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update
from tests.serve.conftest import World

from easel.cli.queues import gpus_of
from easel.declare.resources import Room
from easel.flow.jobs.reports import metric_row
from easel.records.job import GPU_IDLE
from easel.store import devices, job_series
from easel.store import jobs as stored_jobs
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


def test_who_holds_a_gpu_idle_is_told_to_platform_admins_while_the_job_runs(
    world: World, sqlite_store: Store
) -> None:
    there(sqlite_store, NOTES)
    job = submitted(world, 1.0).json()["id"]
    with sqlite_store.write() as tx:
        since = tx.now - timedelta(hours=1)
        held = {"state": "running", "device": "box", "held_at": since, "attempt": 1}
        tx.execute(update(jobs).where(jobs.c.id == job).values(**held))
        row = stored_jobs.rows(tx, [job])[job]
        job_series.add_metrics(tx, [metric_row(row, 1, tx.now, GPU_IDLE, 3600, 1800.0)])
        months = {f"{moment:%Y-%m}" for moment in (since, tx.now)}
    found = world.call("root", "GET", "/api/v1/bills/idle-gpus")
    assert found.status_code == 200, found.text
    [one] = found.json()["items"]
    assert (one["job"], one["project"], one["device"], one["gpus"]) == (job, "astro", "box", 1.0)
    assert one["idle_gpu_hours"] == pytest.approx(0.5, rel=0.01)
    sheet = {"idle_gpus": True}
    told = [
        world.call("root", "GET", "/api/v1/bills/chargeback/csv", params={**sheet, "month": month}).text
        for month in sorted(months)
    ]
    assert all(text.splitlines()[0].endswith("held GPU-hours,running jobs") for text in told)
    assert any(text.splitlines()[-1].startswith("astro,") for text in told)
    assert world.call("astro-admin", "GET", "/api/v1/bills/idle-gpus").status_code == 403


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
