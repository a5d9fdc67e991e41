"""Readiness says what is wrong, a cordon moves traffic away, measurements count, a terminal is left in peace."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from datetime import timedelta

import pytest
from sqlalchemy import text
from tests.serve.conftest import World

from easel.store import backups


def test_readyz_names_everything_that_is_wrong(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with world.app.state.easel.store.write() as tx:
        tx.execute(text("UPDATE alembic_version SET version_num = '0001'"))
    monkeypatch.setattr("easel.serve.routes.operations.free_bytes", lambda _folder: 1 << 20)
    answer = world.call(None, "GET", "/readyz")
    assert answer.status_code == 503
    assert {check["name"] for check in answer.json()["checks"]} == {"database", "disk"}
    assert "schema 0001" in answer.json()["detail"]
    assert "easel_ready 0.0" in world.call("root", "GET", "/metrics").text


def test_a_cordoned_server_is_not_ready_and_serves_all_the_same(world: World) -> None:
    assert world.call("astro-admin", "PUT", "/api/v1/cordon", json={}).status_code == 403
    assert world.call("root", "PUT", "/api/v1/cordon", json={"reason": "upgrade"}).status_code == 200
    answer = world.call(None, "GET", "/readyz")
    assert (answer.status_code, "upgrade" in answer.json()["detail"]) == (503, True)
    assert world.call("astro-member", "GET", "/api/v1/projects/astro/jobs").status_code == 200
    assert world.call("root", "DELETE", "/api/v1/cordon").status_code == 204
    assert world.call(None, "GET", "/readyz").status_code == 200


def test_health_tells_admins_that_no_controller_and_no_device_was_ever_seen(world: World) -> None:
    assert world.call("astro-admin", "GET", "/api/v1/health").status_code == 403
    found = world.call("root", "GET", "/api/v1/health").json()
    assert found["ready"]
    severity = {check["name"]: check["severity"] for check in found["checks"]}
    assert severity == {
        "database": "ok",
        "disk": "ok",
        "controller": "warning",
        "devices": "warning",
        "backups": "warning",
    }


def test_admins_see_backups_and_ask_for_one_but_cannot_say_where_to(world: World) -> None:
    assert world.call("astro-admin", "GET", "/api/v1/backups").status_code == 403
    assert world.call("root", "GET", "/api/v1/backups").json() == {"plan": None, "runs": []}
    refused = world.call("root", "POST", "/api/v1/backups")
    assert (refused.status_code, "easel backup --to" in refused.json()["detail"]) == (404, True)
    with world.app.state.easel.store.write() as tx:
        backups.set_plan(tx, "s3://lab/easel", timedelta(days=1), 14)
    assert world.call("root", "POST", "/api/v1/backups").status_code == 202
    found = world.call("root", "GET", "/api/v1/backups").json()
    assert (found["plan"]["target"], found["plan"]["asked"]) == ("s3://lab/easel", True)


def test_queued_jobs_are_measured(world: World) -> None:
    job = {"name": "x", "run": {"kind": "entry", "target": "m:f"}}
    assert world.call("astro-member", "POST", "/api/v1/projects/astro/jobs", json=job).status_code == 201
    lines = world.call("root", "GET", "/metrics").text.splitlines()
    assert 'easel_jobs{state="queued"} 1.0' in lines
    assert 'easel_attempts_total{state="failed"} 0.0' in lines


LOGS = """
import logging, sys
from easel.serve import logs
logs.configure("info", sys.argv[1])
logging.getLogger(logs.REQUESTS).info("request")
logging.getLogger("easel.controller").info("launched")
"""


@pytest.mark.parametrize(
    ("requests", "terminal", "shown"),
    [("auto", True, False), ("auto", False, True), ("yes", True, True), ("no", False, False)],
)
def test_request_lines_go_to_a_terminal_only_when_asked_for(
    requests: str, terminal: bool, shown: bool
) -> None:
    reading, writing = pty.openpty() if terminal else os.pipe()
    subprocess.run([sys.executable, "-c", LOGS, requests], stderr=writing, check=True)
    written = os.read(reading, 65536).decode()
    os.close(reading)
    os.close(writing)
    assert ('"request"' in written, "launched" in written) == (shown, True)


def test_the_use_of_the_pool_names_other_projects_to_platform_admins_only(world: World) -> None:
    mine = world.call("astro-member", "GET", "/api/v1/projects/astro/pool/history", params={"hours": 1})
    assert mine.status_code == 200, mine.text
    assert mine.json()["step_s"] == 60
    assert mine.json()["complete"] is True
    assert world.call("astro-member", "GET", "/api/v1/pool/history").status_code == 403
    assert world.call("root", "GET", "/api/v1/pool/history").status_code == 200
    far = world.call("root", "GET", "/api/v1/pool/history", params={"hours": 1e6})
    assert far.status_code == 422
