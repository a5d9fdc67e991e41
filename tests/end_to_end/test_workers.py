"""Machines that join the pool of a server over HTTP: `easel worker --server`, followed as the guide says it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from easel.sdk.client import Client
from easel.testing.engine import until
from easel.testing.server import ServerProcess, running

SMALL = {"vcpu": 0.5, "memory_mb": 256}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running(tmp_path_factory.mktemp("server"), executor="remote", worker_lost_after_s="5") as made:
        yield made


@pytest.fixture(scope="module")
def ana(server: ServerProcess) -> Client:
    root = server.client()
    root.projects.create("astro")
    return root.in_project("astro")


def join(
    server: ServerProcess, name: str, token: str, *more: str, cwd: Path | None = None
) -> subprocess.Popen[bytes]:
    folder = server.folder / name
    folder.mkdir(exist_ok=True)
    token_file = folder / "token"
    token_file.touch(mode=0o600)
    token_file.write_text(token)
    kept = {key: value for key, value in os.environ.items() if not key.startswith("EASEL_")}
    command = ["worker", "--server", server.address, "--token-file", str(token_file), "--name", name]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "easel.cli.main", *command, "--home", str(folder / "home"), *more],
            env={**kept, "EASEL_WARM_TRIALS": "false"},
            stdout=log,
            stderr=log,
        )


def test_a_machine_joins_runs_what_it_is_given_from_the_lake_and_leaves(
    server: ServerProcess, ana: Client, tmp_path: Path
) -> None:
    token = server.client().worker_tokens.create("lab").secret
    assert token is not None
    big = tmp_path / "big.bin"
    big.write_bytes(os.urandom(300_000))
    ana.lake.upload(big, "/data/")
    ana.lake.create_file_set("data", ["/data/big.bin"])
    worker = join(server, "box", token, "--vcpu", "1", "--memory-mb", "1024", "--label", "room=cellar")
    try:
        script = "cp input/data/big.bin $EASEL_OUTPUT/copy.bin; echo done on $(hostname)"
        job = ana.jobs.submit(["sh", "-c", script], input="data", resources=SMALL)
        job.wait()
        assert job.about.device == "box"
        assert next(iter(job.logs())).text.startswith("done on")
        ana.lake.checkout(str(job.about.output_set), tmp_path / "back")
        assert next((tmp_path / "back").rglob("copy.bin")).read_bytes() == big.read_bytes()
        (device,) = [each for each in server.client().queues.devices() if each.name == "box"]
        assert (device.name, device.vcpu, device.connected) == ("box", 1.0, True)
        assert device.notes["label room"] == "cellar"
    finally:
        worker.terminate()
        assert worker.wait(60) == 0
    until(lambda: not any(each.connected for each in server.client().queues.devices()))


def test_a_revoked_token_stops_its_worker_and_its_job_is_tried_again_elsewhere(
    server: ServerProcess, ana: Client
) -> None:
    tokens = server.client().worker_tokens
    first, second = tokens.create("first"), tokens.create("second")
    assert first.secret
    assert second.secret
    stolen = join(server, "one", first.secret, "--vcpu", "1", "--memory-mb", "1024")
    # A worker that is just leaving may be given it first: that costs an attempt too.
    job = ana.jobs.submit(["sleep", "1000"], resources=SMALL, retry={"lost": 3})
    try:
        until(lambda: job.refresh().about.device == "one" and job.state == "running")
        tokens.revoke(first.id)
        assert stolen.wait(60) == 1
        again = join(server, "two", second.secret, "--vcpu", "1", "--memory-mb", "1024")
        try:
            until(lambda: job.refresh().about.device == "two")
            assert job.about.attempt >= 2
            job.kill()
            job.wait(check=False)
            assert job.state == "killed"
        finally:
            again.terminate()
            again.wait(60)
    finally:
        stolen.kill()
        stolen.wait()
    assert {token.name for token in tokens.list() if token.revoked_at} == {"first"}


@pytest.mark.parametrize("token", ["easel_nobody", ""])
def test_a_worker_without_a_valid_token_ends_and_says_why(server: ServerProcess, token: str) -> None:
    worker = join(server, "nobody", token)
    assert worker.wait(60) in (1, 7)
    assert "token" in (server.folder / "nobody" / "log").read_text()


def test_a_persons_token_is_not_for_workers_and_a_workers_not_for_people(server: ServerProcess) -> None:
    worker = join(server, "person", server.admin_token)
    assert worker.wait(60) == 1
    assert "person's token" in (server.folder / "person" / "log").read_text()
    secret = server.client().worker_tokens.create("lab").secret
    with pytest.raises(Exception, match="log in again"):
        server.client(secret).whoami()
