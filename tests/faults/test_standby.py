"""Two controllers and two servers on one PostgreSQL: the active controller is killed, the other takes over."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from easel.flow.lake.upload import Lake
from easel.lake.blobs.address import open_blobs
from easel.serve.controller import Controller
from easel.serve.hosting import build_controller, options_of
from easel.serve.settings import Settings
from easel.store import leases
from easel.store.engine import Store
from easel.testing import postgres
from easel.testing.clock import FakeClock
from easel.testing.engine import until
from easel.testing.server import ServerProcess

SMALL = {"vcpu": 0.5, "memory_mb": 256}


def controller(server: ServerProcess, url: str) -> subprocess.Popen[bytes]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("EASEL_")}
    with (server.folder / "controllers.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "easel.cli.main", "controller"],
            env={
                **kept,
                "EASEL_HOME": str(server.folder / "home"),
                "EASEL_DATABASE_URL": url,
                "EASEL_EXECUTOR": "remote",
            },
            stdout=log,
            stderr=log,
        )


@pytest.mark.parametrize("lived", [5.0, 6.4, 7.8])
def test_whoever_stands_by_acts_within_ten_seconds_whenever_the_other_dies(
    sqlite_store: Store, tmp_path: Path, lived: float
) -> None:
    """With the lease that is the default, in simulated time: how often it is renewed and looked at."""
    clock = FakeClock()
    sqlite_store.clock = clock
    lake = Lake(sqlite_store, open_blobs(str(tmp_path / "blobs")))
    settings = options_of(Settings(home=tmp_path, executor="remote"))
    active, standby = (build_controller(lake, settings, clock) for _ in range(2))

    def live(controllers: Sequence[Controller]) -> None:
        for each in controllers:
            each.turn()
        clock.advance(settings.pace.poll)

    while clock.monotonic() < lived:
        live([active, standby])
    assert (active.fence, standby.fence) == (1, None)
    died = clock.monotonic()
    while standby.fence is None:
        live([standby])
    assert clock.monotonic() - died <= 10.0
    assert standby.fence == 2


def test_whoever_stands_by_looks_at_the_lease_now_and_then_however_often_it_is_woken(
    sqlite_store: Store, tmp_path: Path
) -> None:
    clock = FakeClock()
    sqlite_store.clock = clock
    lake = Lake(sqlite_store, open_blobs(str(tmp_path / "blobs")))
    settings = options_of(Settings(home=tmp_path, executor="remote"))
    active, standby = (build_controller(lake, settings, clock) for _ in range(2))
    active.turn()
    standby.turn()
    with sqlite_store.write() as tx:
        leases.release(tx, "controller", active.holder)
    for _ in range(50):  # events of others, all within a moment
        standby.turn()
    assert standby.fence is None
    clock.advance(settings.pace.lease / 8)
    standby.turn()
    assert standby.fence == 2


@pytest.mark.parametrize("hours_off", [-1, 1])
def test_two_controllers_whose_clocks_are_an_hour_apart_agree_who_leads(
    sqlite_store: Store, tmp_path: Path, hours_off: int
) -> None:
    right, wrong = FakeClock(), FakeClock()
    wrong.set_wall_clock(right.now() + timedelta(hours=hours_off))
    sqlite_store.clock = right
    beside = Store(f"sqlite:///{tmp_path}/easel.sqlite", clock=wrong)
    settings = options_of(Settings(home=tmp_path, executor="remote"))
    blobs = open_blobs(str(tmp_path / "blobs"))
    both = [
        build_controller(Lake(sqlite_store, blobs), settings, right),
        build_controller(Lake(beside, blobs), settings, wrong),
    ]

    def live(controllers: Sequence[Controller]) -> None:
        for each in controllers:
            each.turn()
        for clock in (right, wrong):
            clock.advance(settings.pace.poll)

    def fence() -> int:
        with sqlite_store.read() as tx:
            found = leases.stand(tx, "controller")
        assert found is not None
        return found[1]

    live(both)
    settled = fence()
    while right.monotonic() < 60.0:
        live(both)
    assert fence() == settled, "they take the lease from each other again and again"
    (leader,) = [each for each in both if each.fence == settled]
    (other,) = [each for each in both if each is not leader]
    died = right.monotonic()
    while other.fence is None:
        live([other])
    assert right.monotonic() - died <= 10.0
    beside.close()


@pytest.mark.postgres
def test_a_standby_takes_over_and_nothing_runs_twice(
    postgres_server: postgres.Postgres, tmp_path: Path
) -> None:
    url = postgres_server.create("standby")
    server = ServerProcess(tmp_path, url, executor="remote")
    server.start()
    store = Store(url)
    processes: list[subprocess.Popen[bytes]] = []

    def holder() -> str | None:
        with store.read() as tx:
            found = leases.stand(tx, "controller")
        return found[0] if found else None

    try:
        until(lambda: holder() is not None, 120)
        first = holder()
        processes.append(controller(server, url))  # stands by
        root = server.client()
        root.projects.create("astro")
        token = root.worker_tokens.create("lab").secret
        folder = tmp_path / "box"
        with (tmp_path / "box.log").open("wb") as log:
            processes.append(
                subprocess.Popen(
                    [
                        *(sys.executable, "-m", "easel.cli.main", "worker", "--server", server.address),
                        *("--name", "box", "--home", str(folder), "--vcpu", "1", "--memory-mb", "1024"),
                    ],
                    env={**os.environ, "EASEL_TOKEN": str(token), "EASEL_WARM_TRIALS": "false"},
                    stdout=log,
                    stderr=log,
                )
            )
        ana = root.in_project("astro")
        script = "echo ran >> $EASEL_OUTPUT/runs; while [ ! -e input/../go ]; do sleep 0.05; done"
        job = ana.jobs.submit(["sh", "-c", script], resources=SMALL)
        until(lambda: job.refresh().state == "running", 120)
        server.kill()  # server and active controller, at once
        until(lambda: holder() != first, 120)
        (attempt,) = (folder / "run" / "attempts").glob(f"{job.id}.1")
        (attempt / "work" / "go").touch()
        server.start()
        job.wait()
        assert job.about.attempt == 1
        assert job.about.output_set is not None
        kinds = [event.kind for event in ana.events.list(200, filter=[f"subject:eq:{job.id}"])]
        assert kinds.count("job.finished") == 1
        assert kinds.count("job.launching") == 1
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(60)
        server.kill()
        server.close_clients()
        store.close()
