"""docs/how-to/slurm.md, followed literally on a real Slurm; and its faults: restarts, cancelling, preemption."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from easel.sdk.client import Client
from easel.sdk.jobs import JobHandle
from easel.testing import guides
from easel.testing import server as servers
from easel.testing.engine import until
from easel.testing.server import ServerProcess
from easel.testing.slurm import Slurm

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "slurm.md"
SMALL = {"vcpu": 1.0, "memory_mb": 256}
PATIENCE_S = 180


@pytest.fixture(scope="module")
def server(slurm: Slurm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """`easel up` with what the guide exports, where this machine's Slurm is found."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in slurm.variables.items():
            patch.setenv(name, value)
        with servers.running(tmp_path_factory.mktemp("slurm"), **guides.settings(GUIDE)) as made:
            made.client().projects.create("astro")
            yield made
            made.stop()


@pytest.fixture(scope="module")
def ana(server: ServerProcess) -> Client:
    return server.client().in_project("astro")


@pytest.fixture
def job(server: ServerProcess, ana: Client) -> Iterator[JobHandle]:
    """One that runs on Slurm until it is ended."""
    made = ana.jobs.submit(["sleep", "1000"], resources=SMALL, retry={"lost": 1})
    until(lambda: runs_as(made, 1), PATIENCE_S)
    yield made
    made.kill()
    made.wait(check=False)
    assert made.state == "killed"


def runs_as(job: JobHandle, attempt: int) -> bool:
    about = job.refresh().about
    placed = (about.device or "").startswith("slurm-")
    return placed and about.state == "running" and about.attempt == attempt


def batch_jobs(slurm: Slurm) -> set[str]:
    return set(slurm.run("squeue", "--noheader", "--states=all", "--format=%i").split())


def slurm_id(slurm: Slurm, job: JobHandle) -> str:
    (number,) = slurm.run("squeue", "--noheader", f"--name={job.about.device}", "--format=%i").split()
    return number


def test_the_guide_and_its_second_job_does_not_queue(
    slurm: Slurm, server: ServerProcess, ana: Client
) -> None:
    before = batch_jobs(slurm)
    first, second = guides.follow(server, GUIDE, "astro")
    assert "it runs in Slurm job job_" in first
    assert "no queue this time" in second
    assert len(batch_jobs(slurm) - before) <= 1


def test_a_job_is_found_again_after_both_controllers_restart(
    slurm: Slurm, server: ServerProcess, job: JobHandle
) -> None:
    before = slurm_id(slurm, job)
    server.kill()
    slurm.stop_controller()
    slurm.start_controller()
    server.start()
    until(lambda: runs_as(job, 1), PATIENCE_S)
    assert slurm_id(slurm, job) == before


def test_scancel_behind_our_back_costs_one_attempt(
    slurm: Slurm, server: ServerProcess, job: JobHandle
) -> None:
    slurm.run("scancel", slurm_id(slurm, job))
    until(lambda: runs_as(job, 2), PATIENCE_S)


def test_slurm_does_not_requeue_what_we_try_again_ourselves(
    slurm: Slurm, server: ServerProcess, job: JobHandle
) -> None:
    """What preemption does to a batch job that may not be requeued: it ends, and our rule holds."""
    number = slurm_id(slurm, job)
    assert "disabled" in slurm.run("scontrol", "requeue", number)
    assert "Requeue=0" in slurm.run("scontrol", "show", "job", number)
    slurm.run("scancel", "--signal=TERM", "--full", number)
    until(lambda: runs_as(job, 2), PATIENCE_S)


def test_somebody_more_urgent_costs_one_attempt_and_the_next_one_waits_for_its_turn(
    slurm: Slurm, server: ServerProcess, job: JobHandle
) -> None:
    number = slurm_id(slurm, job)
    slurm.push_out(number)
    until(lambda: runs_as(job, 2), PATIENCE_S)
    assert "JobState=PREEMPTED" in slurm.run("scontrol", "show", "job", number)
    assert slurm_id(slurm, job) != number
