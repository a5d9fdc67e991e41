"""docs/how-to/ray.md and slurm.md, followed literally, on real clusters; and the faults of both."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from easel.sdk.client import Client
from easel.sdk.jobs import Job
from easel.testing import server as servers
from easel.testing.engine import until
from easel.testing.ray import RayCluster
from easel.testing.server import ServerProcess
from easel.testing.slurm import Slurm

GUIDES = Path(__file__).parents[2] / "docs" / "how-to"
SMALL = {"vcpu": 1.0, "memory_mb": 256}


def blocks(guide: str, kind: str) -> list[str]:
    """The shell blocks that are marked for us."""
    text = (GUIDES / guide).read_text()
    found = re.findall(rf"<!-- test: {kind} -->\s*```sh\n(.*?)```", text, re.DOTALL)
    assert found, f"{guide} has nothing marked {kind}"
    return [re.sub(r"^   ", "", block, flags=re.MULTILINE) for block in found]


def settings(guide: str) -> dict[str, str]:
    (block,) = blocks(guide, "settings")
    pairs = re.findall(r"^export EASEL_(\w+)=(.*)$", block, re.MULTILINE)
    return {name.lower(): value for name, value in pairs}


@contextmanager
def up(
    folder: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], **changes: str
) -> Iterator[ServerProcess]:
    """`easel up` with what the guide exports, and this machine's cluster where it names another."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with servers.running(folder, warm_trials="false", **changes) as server:
        yield server
        server.stop()


def follow(server: ServerProcess, guide: str) -> list[str]:
    """Run the guide's commands as a person would; what each printed."""
    environment = {
        **os.environ,
        "EASEL_SERVER": server.address,
        "EASEL_TOKEN": server.admin_token,
        "EASEL_PROJECT": "astro",
    }
    told = []
    for line in blocks(guide, "run"):
        words = shlex.split(line)
        assert words[0] == "easel"
        done = subprocess.run(
            [sys.executable, "-m", "easel.cli.main", *words[1:]],
            env=environment,
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        told.append(done.stdout)
    return told


def project(server: ServerProcess) -> Client:
    root = server.client()
    root.projects.create("astro")
    return root.in_project("astro")


def placed(job: Job, engine: str) -> bool:
    return (job.refresh().about.device or "").startswith(f"{engine}-") and job.state == "running"


def test_the_ray_guide_and_a_lost_node(
    ray_cluster: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {**settings("ray.md"), "keep_warm_s": "3"}
    given |= {"ray_address": ray_cluster.address, "ray_token_file": str(ray_cluster.token_file)}
    with up(tmp_path, monkeypatch, {}, **given) as server:
        ana = project(server)
        first, several = follow(server, "ray.md")
        assert "it runs on Ray as job_" in first
        assert re.search(r"I am 0 of 2, peers [\d.]+,[\d.]+", several)
        job = ana.jobs.submit(["sleep", "1000"], resources=SMALL)
        until(lambda: placed(job, "ray"), 120)
        (node,) = ray_cluster.nodes
        ray_cluster.kill_node(node)
        until(lambda: job.refresh().about.attempt == 2, 120)
        ray_cluster.add_node()
        until(lambda: placed(job, "ray"), 120)
        assert job.about.attempt == 2
        job.kill()
        job.wait(check=False)
        assert job.state == "killed"


def test_the_slurm_guide_a_restart_of_both_controllers_scancel_and_requeue(
    slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = settings("slurm.md")
    with up(tmp_path, monkeypatch, slurm.variables, **given) as server:
        ana = project(server)
        first, second = follow(server, "slurm.md")
        assert "it runs in Slurm job job_" in first
        assert "no queue this time" in second
        assert len(slurm.run("squeue", "--noheader").strip().splitlines()) == 1
        job = ana.jobs.submit(["sleep", "1000"], resources=SMALL, retry={"lost": 5})
        until(lambda: placed(job, "slurm"), 120)
        # Found again after both controllers went away.
        server.kill()
        slurm.kill_controller()
        slurm.start_controller()
        server.start()
        assert job.refresh().about.attempt == 1
        (number,) = slurm.run("squeue", "--noheader", "--format=%i").split()
        # Requeued by Slurm, as preemption does: tried again by our rule.
        slurm.run("scontrol", "requeue", number)
        until(lambda: job.refresh().about.attempt == 2, 120)
        until(lambda: placed(job, "slurm"), 120)
        # Cancelled behind our back.
        slurm.run("scancel", "--user=root")
        until(lambda: job.refresh().about.attempt == 3, 120)
        until(lambda: placed(job, "slurm"), 120)
        job.kill()
        job.wait(check=False)
        assert job.state == "killed"
