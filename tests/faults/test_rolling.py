"""An installation is replaced by its next release, part by part, while requests flow and jobs run."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from easel.sdk.client import Client
from easel.store.migrate import revision
from easel.testing import postgres
from easel.testing.engine import until
from easel.testing.rolling import NEXT_SCHEMA, NEXT_VERSION, Traffic, installed

JOBS = 3


@pytest.mark.postgres
def test_no_request_fails_and_no_attempt_is_lost_while_old_and_new_serve_side_by_side(
    postgres_server: postgres.Postgres, tmp_path: Path
) -> None:
    with (
        installed(tmp_path, postgres_server.create("rolling")) as lab,
        Client(lab.proxy.address, lab.token, attempts=12) as root,
    ):
        for name in ("traffic", "work"):
            root.projects.create(name)
        root.in_project("traffic").queues.change(max_active=0)  # its jobs wait
        wait = f"while [ ! -e {tmp_path}/go ]; do sleep 0.1; done"
        work = root.in_project("work")
        jobs = [
            work.jobs.submit(["sh", "-c", wait], resources={"vcpu": 0.5, "memory_mb": 128})
            for _ in range(JOBS)
        ]
        until(lambda: all(job.refresh().state == "running" for job in jobs), 120)
        traffic = Traffic(lab.proxy.address, lab.token, "traffic")
        with traffic.flowing():
            lab.upgrade_server(0)
            assert revision(lab.store) == NEXT_SCHEMA
            old = httpx.get(f"{lab.servers[1].address}/readyz")
            assert old.status_code == 200, old.text  # the schema moved on, the old release goes on
            before = traffic.answered
            until(lambda: traffic.answered > before + 20)  # old and new, in turns
            lab.upgrade_server(1)
            lab.upgrade_controllers()
            (tmp_path / "go").touch()
            for job in jobs:
                job.wait()
        assert traffic.failures == []
        assert traffic.answered > 40
        assert [(job.about.state, job.about.attempt) for job in jobs] == [("finished", 1)] * JOBS
        assert root.operations.health().version == NEXT_VERSION
        attempts = [len(job.attempts()) for job in jobs]
    assert attempts == [1] * JOBS
