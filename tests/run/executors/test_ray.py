"""Ray as an engine: the suite, on a real cluster of a head and a node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from easel.declare.resources import Resources
from easel.run.entries import LoggedLines
from easel.run.executors.base import Executor, MemberSaid
from easel.run.executors.ray import RayEngine
from easel.testing.engine import alive, until
from easel.testing.executor import ExecutorSuite, Listener, Make, clean, sh
from easel.testing.fleet import EngineServer, engine_server
from easel.testing.ray import RayCluster

pytestmark = pytest.mark.timeout(900)  # a node that starts beside other tests takes a minute


@pytest.fixture(scope="module")
def server(ray_cluster: RayCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineServer]:
    home = tmp_path_factory.mktemp("home")
    engine = RayEngine(ray_cluster.address, home / "ray.log", ray_cluster.variables)
    with engine_server(home, engine) as made:
        yield made


class TestRay(ExecutorSuite):
    capacity_is_told = False

    @pytest.fixture
    def make(self, server: EngineServer) -> Iterator[Make]:
        def made(_name: str) -> Executor:
            return server.executor()

        yield made
        clean(server.executor())


def said(heard: Listener, rank: int) -> list[bytes]:
    members = (each for each in heard.reports if isinstance(each, MemberSaid) and each.rank == rank)
    bodies = (entry.body for each in members for entry in each.entries)
    return [body.data or b"" for body in bodies if isinstance(body, LoggedLines)]


def test_members_of_one_job_are_spread_over_nodes_and_know_each_other(
    ray_cluster: RayCluster, tmp_path: Path
) -> None:
    """No node could hold both: they run because there are two nodes."""
    second = ray_cluster.add_node()
    engine = RayEngine(ray_cluster.address, tmp_path / "ray.log", ray_cluster.variables)
    with engine_server(tmp_path, engine, warm_s=60.0) as server:
        heard = Listener(server.executor())
        script = "echo $EASEL_RANK of $EASEL_WORLD_SIZE among $EASEL_PEERS"
        heard.executor.start(sh("both", script, workers=2, resources=Resources(1.5, 256)))
        heard.done("both.1")
        assert heard.log("both.1") == b"0 of 2 among 127.0.0.1,127.0.0.1\n"
        heard.until(lambda: b"".join(said(heard, 1)) == b"1 of 2 among 127.0.0.1,127.0.0.1\n")
        clean(heard.executor)
    ray_cluster.kill_node(second)


@pytest.mark.parametrize(
    ("actors", "placements"),
    [
        (["ray-a", "ray-a-1"], {"ray-a"}),
        (["ray-a-1"], {"ray-a"}),
        (["ray-a", "ray-b-12", "other"], {"ray-a", "ray-b"}),
        ([], set()),
    ],
)
def test_a_placement_is_there_with_any_of_its_actors(actors: list[str], placements: set[str]) -> None:
    driver = pytest.importorskip("easel.run.executors.ray_driver")
    assert driver.placements_of(actors, "ray-") == placements


def test_a_lost_node_takes_what_is_rays_and_leaves_it_to_our_worker_to_notice(tmp_path: Path) -> None:
    """Killing a job's command beside its worker would end the job by that, whenever its agent is quick enough."""
    ours = "sh -c 'sleep 1000; true' easel.cli.main"
    node = psutil.Popen(["sh", "-c", f"{ours} & sleep 1000 & wait"])
    until(lambda: len(node.children(recursive=True)) == 3)
    children = node.children()
    (worker,) = [each for each in children if "easel.cli.main" in each.cmdline()]
    (of_ray,) = [each for each in children if each != worker]
    (command,) = worker.children()
    RayCluster(tmp_path, 0, tmp_path / "token").kill_node(node.pid)
    node.wait()
    until(lambda: not alive(of_ray.pid))
    assert alive(worker.pid)
    assert alive(command.pid)
    for each in (worker, command):
        each.kill()


def test_ray_hands_out_shares_of_a_gpu(ray_cluster: RayCluster, tmp_path: Path) -> None:
    """Two halves of the one declared GPU run at once; a third waits until a half is free."""
    node = ray_cluster.add_node(cpus=4, memory_mb=1024, gpus=1)
    engine = RayEngine(ray_cluster.address, tmp_path / "ray.log", ray_cluster.variables)
    with engine_server(tmp_path, engine, warm_s=1.0) as server:
        assert any(room.gpus == (1.0,) for room in engine.capacity())
        heard = Listener(server.executor())
        half = Resources(0.5, 128, 0.5)
        script = "echo $CUDA_VISIBLE_DEVICES has $EASEL_GPU_SHARE; exec sleep 1000"
        for name in ("one", "two"):
            heard.executor.start(sh(name, script, resources=half))
        for name in ("one", "two"):
            heard.reached(f"{name}.1", "running")
            heard.until(lambda name=name: heard.log(f"{name}.1") == b"0 has 0.5\n")  # type: ignore[misc]
        heard.executor.start(sh("three", "echo $CUDA_VISIBLE_DEVICES", resources=half))
        heard.executor.kill("one.1")
        heard.done("three.1")
        assert heard.log("three.1") == b"0\n"
        clean(heard.executor)
    ray_cluster.kill_node(node)
