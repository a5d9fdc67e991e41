"""What everything stands on goes away for a while: a bucket for half a minute, PostgreSQL under two servers."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from easel.testing import postgres, s3
from easel.testing.engine import until
from easel.testing.s3 import S3Server
from easel.testing.server import ServerProcess, running

SMALL = {"vcpu": 0.5, "memory_mb": 256}
OUTAGE_S = 30.0
PATIENCE_S = 120
GATED = "until [ -e go ]; do sleep 0.05; done; "


@pytest.fixture
def bucket_server() -> Iterator[S3Server]:
    server = S3Server()
    server.start()
    yield server
    server.stop()


def test_jobs_that_end_while_the_bucket_is_away_for_half_a_minute_keep_what_they_made(
    bucket_server: S3Server, tmp_path: Path
) -> None:
    bucket = s3.new_bucket(bucket_server.endpoint)
    settings = {
        "blobs_url": bucket.url,
        "s3_endpoint": bucket.endpoint,
        "s3_access_key": s3.KEY,
        "s3_secret_key": s3.KEY,
    }
    with running(tmp_path, **settings) as server:
        root = server.client()
        root.projects.create("astro")
        ana = root.in_project("astro")
        makes = {"large": "head -c 300000 /dev/zero > $EASEL_OUTPUT/x", "small": "echo few > $EASEL_OUTPUT/x"}
        jobs = {
            name: ana.jobs.submit(["sh", "-c", GATED + make], resources=SMALL) for name, make in makes.items()
        }
        until(lambda: all(job.refresh().state == "running" for job in jobs.values()), PATIENCE_S)
        bucket_server.stop()
        began = time.monotonic()
        for job in jobs.values():
            (server.folder / "home" / "run" / "attempts" / f"{job.id}.1" / "work" / "go").touch()
        while time.monotonic() - began < OUTAGE_S:
            assert not any(job.refresh().about.over for job in jobs.values())
            assert httpx.get(f"{server.address}/healthz").status_code == 200
            time.sleep(0.25)  # leaves the processor to the tests beside this one
        bucket_server.start()
        for job in jobs.values():
            assert job.wait().about.attempt == 1
        for name, size in (("large", 300_000), ("small", 4)):
            ana.lake.checkout(str(jobs[name].about.output_set), tmp_path / name)
            (file,) = (path for path in (tmp_path / name).rglob("x"))
            assert file.stat().st_size == size


@contextmanager
def process(server: ServerProcess, *words: str, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    """A further part of the installation, beside `server`."""
    with (server.folder / f"{words[0]}.log").open("ab") as log:
        made = subprocess.Popen(
            [sys.executable, "-m", "easel.cli.main", *words],
            env={**server.environment, **more},
            stdout=log,
            stderr=log,
        )
    try:
        yield made
    finally:
        made.terminate()
        made.wait(PATIENCE_S)


@pytest.mark.postgres
def test_two_servers_share_the_work_over_a_restart_of_their_database_and_the_loss_of_one(
    tmp_path: Path,
) -> None:
    """Submitted at one, run by a worker of the other, watched at both; then the first is killed."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    with postgres.running() as database:
        url = database.create("easel")
        first = ServerProcess(tmp_path / "a", url, command="serve", executor="remote")
        home = first.environment["EASEL_HOME"]
        second = ServerProcess(tmp_path / "b", url, command="serve", executor="remote", home=home)
        first.start()
        second.start()
        try:
            with process(first, "controller"):
                root = first.client()
                root.projects.create("astro")
                secret = root.worker_tokens.create("lab").secret
                assert secret is not None
                joined = (
                    "worker",
                    "--server",
                    second.address,
                    "--name",
                    "box",
                    "--home",
                    str(tmp_path / "box"),
                )
                with process(first, *joined, "--vcpu", "1", "--memory-mb", "1024", EASEL_TOKEN=secret):
                    here = root.in_project("astro")
                    there = second.client(first.admin_token).in_project("astro")
                    job = here.jobs.submit(["sh", "-c", f"echo begun; {GATED} echo done"], resources=SMALL)
                    same = there.jobs.get(job.id)
                    until(lambda: same.refresh().state == "running", PATIENCE_S)
                    database.stop()
                    (tmp_path / "box" / "run" / "attempts" / f"{job.id}.1" / "work" / "go").touch()
                    journal = tmp_path / "box" / "run" / "attempts" / f"{job.id}.1.journal"
                    until(lambda: '"k":"done"' in journal.read_text(), PATIENCE_S)
                    database.start()
                    until(lambda: job.refresh().about.over, PATIENCE_S)
                    first.kill()
                    assert same.wait().about.attempt == 1
                    assert [line.text for line in same.logs()] == ["begun", "done"]
                    again = there.jobs.submit(["echo", "alone"], resources=SMALL)
                    assert [line.text for line in again.wait().logs()] == ["alone"]
        finally:
            for server in (first, second):
                server.kill()
                server.close_clients()
