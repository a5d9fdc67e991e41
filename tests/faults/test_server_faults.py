"""Kill it, stop its database, crowd it: nothing acknowledged is lost, nothing happens twice."""

from __future__ import annotations

import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from easel.errors import EaselError
from easel.sdk.client import Client
from easel.testing import postgres
from easel.testing.engine import until
from easel.testing.server import ServerProcess, running

SMALL = {"vcpu": 0.5, "memory_mb": 256}
OUTAGE_S = 20.0


def test_creates_acknowledged_around_a_kill_exist_exactly_once(tmp_path: Path) -> None:
    """200 creates at once, with retries; the server dies by kill -9 in the middle and comes back on its port."""
    with running(tmp_path) as server:
        clients = [server.client() for _ in range(10)]
        started = threading.Barrier(201)
        acknowledged: list[str] = []

        def create(worker: int) -> None:
            started.wait()
            name = f"p{worker}"
            made = clients[worker % 10].projects.create(name, key=f"key-{name}")
            assert made.name == name
            acknowledged.append(name)

        with ThreadPoolExecutor(200) as pool:
            work = [pool.submit(create, n) for n in range(200)]
            started.wait()
            while len(acknowledged) < 20:
                pass
            server.kill()
            server.start()
            for done in work:
                done.result()
        names = [p.name for p in server.client().projects.list()]
    assert len(acknowledged) == 200
    assert sorted(names) == sorted(acknowledged)


def test_every_read_that_was_answered_before_a_kill_is_in_the_audit_once(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        server.client().projects.create("astro")
        with httpx.Client(base_url=server.address) as http:
            for number in range(50):
                headers = {"Authorization": f"Bearer {server.admin_token}", "X-Request-ID": f"read-{number}"}
                path = f"/api/v1/projects/astro/jobs?limit={number + 1}"
                assert http.get(path, headers=headers, timeout=60).status_code == 200
        server.kill()
        server.start()
        root = server.client()
        until(lambda: len(_reads(root)) >= 50)
        assert _reads(root) == sorted(f"read-{number}" for number in range(50))
        assert root.audit.verify().whole


def _reads(root: Client) -> list[str]:
    found = root.audit.list(["method:eq:GET", "path:contains:/astro/jobs"])
    return sorted(each.request_id for each in found if each.request_id.startswith("read-"))


def test_fifty_clients_writing_at_once_all_succeed_on_sqlite(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        token = server.admin_token

        def write(n: int) -> int:
            with httpx.Client(base_url=server.address, headers={"Authorization": f"Bearer {token}"}) as http:
                answers = [
                    http.post("/api/v1/projects", json={"name": f"w{n}-{i}"}, timeout=60) for i in range(4)
                ]
            return sum(answer.status_code == 201 for answer in answers)

        with ThreadPoolExecutor(50) as pool:
            assert sum(pool.map(write, range(50))) == 200


@pytest.mark.postgres
def test_requests_fail_clearly_while_postgresql_is_away_and_recover_without_a_restart(
    tmp_path: Path, postgres_template: str
) -> None:
    with postgres.running() as database:
        url = database.create("easel")
        with running(tmp_path, url) as server:
            client = server.client()
            client.projects.create("before")
            gate = tmp_path / "home" / "run" / "attempts"
            script = "until [ -e go ]; do sleep 0.05; done; echo done"
            job = client.in_project("before").jobs.submit(["sh", "-c", script], resources=SMALL)
            until(lambda: job.refresh().state == "running")
            database.stop()
            stopped = time.monotonic()
            next(gate.glob(f"{job.id}.1/work")).joinpath("go").touch()
            while time.monotonic() - stopped < OUTAGE_S:
                answer = httpx.get(
                    f"{server.address}/api/v1/projects",
                    headers={"Authorization": f"Bearer {server.admin_token}"},
                    timeout=30,
                )
                assert answer.status_code == 503
                assert int(answer.headers["Retry-After"]) >= 1
                assert answer.json()["kind"] == "try-later"
                assert httpx.get(f"{server.address}/healthz").status_code == 200
                assert httpx.get(f"{server.address}/readyz", timeout=30).status_code == 503
            database.start()
            patient = server.client()
            assert patient.projects.get("before").name == "before"
            patient.projects.create("after")
            # What ended while nobody could be told is told now.
            assert [line.text for line in job.wait().logs()] == ["done"]
            assert job.about.attempt == 1


def test_a_graceful_stop_ends_open_streams_and_answers_what_it_accepted(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        server.client().projects.create("astro")
        followers = [server.client(project="astro").events.follow() for _ in range(3)]
        for follower in followers:
            assert next(follower).kind == "project.created"
        assert server.stop() == 0
    assert "unhandled error" not in server.log


def test_a_stream_survives_a_restart_and_misses_nothing(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        client = server.client()
        client.projects.create("astro")
        stream = client.in_project("astro").events.follow()
        assert next(stream).kind == "project.created"
        server.kill()
        server.start()
        client.in_project("astro").users.create("ana")
        assert next(stream).kind == "user.created"


def test_a_client_whose_token_is_revoked_gets_401_not_a_retry_storm(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        root = server.client()
        root.projects.create("astro")
        made = root.in_project("astro").users.create("ana")
        assert made.token.secret is not None
        ana = server.client(made.token.secret)
        root.tokens.revoke(made.token.id)
        with pytest.raises(EaselError) as caught:
            ana.whoami()
        assert caught.value.kind == "unauthenticated"


def test_another_address_in_a_header_gives_no_more_tries(tmp_path: Path) -> None:
    """A program of this machine may name any address; only a proxy that an admin trusts is believed."""
    with (
        running(tmp_path, command="serve", failed_logins_per_minute="3") as server,
        httpx.Client(base_url=server.address, timeout=60) as http,
    ):
        answers = [
            http.get(
                "/api/v1/projects",
                headers={"Authorization": f"Bearer wrong-{n}", "X-Forwarded-For": f"10.0.0.{n}"},
            )
            for n in range(5)
        ]
    assert [answer.status_code for answer in answers] == [401, 401, 401, 429, 429]


def test_a_second_server_on_the_same_port_says_so(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        (tmp_path / "other").mkdir()
        rival = ServerProcess(tmp_path / "other")
        rival.port = server.port
        with pytest.raises(RuntimeError, match="did not start"):
            rival.start()
        assert "EASEL_PORT" in rival.log


def test_a_full_disk_refuses_writes_with_the_reason_and_is_forgotten_when_there_is_room(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m,mode=700", "tmpfs", str(home)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root may mount a small disk")
    try:
        # The whole disk is smaller than what should be left.
        with running(tmp_path, least_free_mb="0") as server:
            client = server.client()
            client.projects.create("before")
            filler = home / "filler"
            with suppress(OSError), filler.open("wb", buffering=0) as file:
                while True:
                    file.write(bytes(4096))
            headers = {"Authorization": f"Bearer {server.admin_token}"}
            with httpx.Client(base_url=server.address, headers=headers, timeout=60) as http:
                answers = [http.post("/api/v1/projects", json={"name": f"p{i}"}) for i in range(20)]
                full = next(answer for answer in answers if answer.status_code == 503)
                assert "disk" in full.json()["detail"]
                assert http.get("/api/v1/projects/before").status_code == 200
            filler.unlink()
            client.projects.create("after")
            acknowledged = {f"p{i}" for i, answer in enumerate(answers) if answer.status_code == 201}
            assert {p.name for p in client.projects.list()} == {"before", "after"} | acknowledged
    finally:
        subprocess.run(["umount", "-l", str(home)], check=True)
