"""Runs found by what they measured, compared, run one after another and as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from easel.sdk.client import Client
from easel.sdk.jobs import JobFailed
from easel.testing.commands import run_as
from easel.testing.server import ServerProcess, running

SMALL = {"vcpu": 0.5, "memory_mb": 128}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running(tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture(scope="module")
def client(server: ServerProcess) -> Client:
    root = server.client()
    root.projects.create("astro")
    return root.in_project("astro")


def easel(server: ServerProcess, client: Client, cwd: Path, *arguments: str) -> str:
    done = run_as(client, *arguments, cwd=cwd, COLUMNS="200")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_array_is_one_job_for_each_value_and_the_best_is_found(
    server: ServerProcess, client: Client, tmp_path: Path
) -> None:
    say = "echo '[EASEL_METRIC] accuracy=0.{lr} step=1'; echo '[EASEL_METRIC] accuracy=0.5 step=2'"
    sized = ("--vcpu", "0.5", "--memory", "128")
    table = easel(server, client, tmp_path, "run", *sized, "--array", "lr=3,9", "--", "sh", "-c", say)
    heading, *rows = table.splitlines()
    assert [word for word in heading.split() if word in ("lr", "accuracy")] == ["lr", "accuracy"]
    assert [("3" in row, "9" in row.partition("ago")[0], "0.5" in row) for row in rows if "0.5" in row]
    assert len(rows) == 2
    best = client.lake.max("job", "accuracy_max")
    assert best is not None
    assert best.tags["lr"] == 9.0
    assert (best.tags["accuracy"], best.tags["accuracy_min"]) == (0.5, 0.5)
    assert [job.name for job in client.lake.find("job", "accuracy_max > 0.6")] == [best.name]
    listed = easel(
        server, client, tmp_path, *["jobs", "ls", "--columns", "lr,accuracy_max", "--sort", "-accuracy_max"]
    )
    assert listed.index("0.9") < listed.index("0.5")
    other = next(job.name for job in client.lake.find("job", "lr = 3"))
    compared = easel(server, client, tmp_path, "jobs", "compare", best.name, other)
    assert "accuracy_max" in compared
    assert "vcpu" not in compared


def test_a_job_runs_after_another_and_fails_with_it(client: Client) -> None:
    broken = client.jobs.submit("sleep 0.5; exit 4", resources=SMALL)
    then = client.jobs.submit("true", after=[broken.id], resources=SMALL)
    with pytest.raises(JobFailed, match=f"{broken.id}, which it needs, ended failed"):
        then.wait()


def test_a_job_whose_forerunner_is_killed_in_the_queue_does_not_wait_for_ever(client: Client) -> None:
    first = client.jobs.submit("sleep 60", resources=SMALL)
    second = client.jobs.submit("true", after=[first.id], resources=SMALL)
    third = client.jobs.submit("true", after=[second.id], resources=SMALL)
    assert second.refresh().about.waiting == f"it waits for {first.id}"
    second.kill()
    with pytest.raises(JobFailed, match="was killed"):
        third.wait()
    first.kill()


def test_a_failure_tells_the_end_of_the_log(client: Client) -> None:
    job = client.jobs.submit("for i in $(seq 30); do echo line $i; done; exit 3", resources=SMALL)
    with pytest.raises(JobFailed) as caught:
        job.wait()
    assert caught.value.log[-1] == "line 30"
    assert len(caught.value.log) == 20
    assert "line 30" in str(caught.value)


def test_the_logs_of_all_attempts_are_kept(client: Client) -> None:
    job = client.jobs.submit("echo try; exit 3", retry={"failed": 1}, resources=SMALL).wait(check=False)
    assert job.about.attempt == 2
    for attempt in (1, 2):
        assert [line.text for line in job.logs(attempt=attempt)] == ["try"]
