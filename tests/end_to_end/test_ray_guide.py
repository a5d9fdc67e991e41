"""docs/how-to/ray.md, followed literally on a real cluster of a head and a node; and what happens when they go."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from easel.sdk.client import Client
from easel.sdk.jobs import JobHandle
from easel.testing import guides
from easel.testing import server as servers
from easel.testing.engine import until
from easel.testing.ray import PATIENT, RayCluster
from easel.testing.server import ServerProcess

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "ray.md"
SMALL = {"vcpu": 1.0, "memory_mb": 256}
PATIENCE_S = 180

pytestmark = pytest.mark.timeout(900)  # a node that starts beside other tests takes a minute


@pytest.fixture(scope="module")
def server(ray_cluster: RayCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """`easel up` with what the guide exports, and this machine's cluster where it names another."""
    given = guides.settings(GUIDE) | {"keep_warm_s": "2", "worker_lost_after_s": "30"}
    given |= {"ray_address": ray_cluster.address, "ray_token_file": str(ray_cluster.token_file)}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in PATIENT.items():
            patch.setenv(name, value)
        with servers.running(tmp_path_factory.mktemp("ray"), **given) as made:
            made.client().projects.create("astro")
            yield made
            made.stop()


@pytest.fixture(scope="module")
def ana(server: ServerProcess) -> Client:
    return server.client().in_project("astro")


def runs_as(job: JobHandle, attempt: int) -> bool:
    about = job.refresh().about
    placed = (about.device or "").startswith("ray-")
    return placed and about.state == "running" and about.attempt == attempt


def await_attempt(job: JobHandle, attempt: int) -> None:
    try:
        until(lambda: runs_as(job, attempt), PATIENCE_S)
    except AssertionError:
        pytest.fail(f"attempt {attempt} never ran; the job stands so: {job.refresh().about}")


def end(job: JobHandle) -> None:
    job.kill()
    job.wait(check=False)
    assert job.state == "killed"


def test_the_guide(ray_cluster: RayCluster, server: ServerProcess, ana: Client) -> None:
    first, several = guides.follow(server, GUIDE, "astro")
    assert "it runs on Ray as job_" in first
    assert re.search(r"I am 0 of 2, peers [\d.]+,[\d.]+", several)


def test_a_lost_node_costs_its_job_one_attempt_by_our_rule(
    ray_cluster: RayCluster, server: ServerProcess, ana: Client
) -> None:
    job = ana.jobs.submit(["sleep", "1000"], resources=SMALL)
    await_attempt(job, 1)
    for node in list(ray_cluster.nodes):
        ray_cluster.kill_node(node)
    ray_cluster.add_node()
    await_attempt(job, 2)
    end(job)


def test_after_a_restart_of_the_head_its_jobs_are_tried_again_on_new_nodes(
    ray_cluster: RayCluster, server: ServerProcess, ana: Client
) -> None:
    job = ana.jobs.submit(["sleep", "1000"], resources=SMALL)
    await_attempt(job, 1)
    ray_cluster.restart_head()
    ray_cluster.add_node()
    await_attempt(job, 2)
    after = ana.jobs.submit(["echo", "well"], resources=SMALL)
    after.wait()
    assert after.about.attempt == 1
    end(job)
