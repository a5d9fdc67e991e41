"""Slurm as an engine: the suite, on a real one-node cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from easel.records.attempt import EndReason
from easel.run.entries import AttemptEnded
from easel.run.executors.base import Executor
from easel.run.executors.slurm import SlurmEngine, SlurmOptions
from easel.testing.engine import until
from easel.testing.executor import ExecutorSuite, Listener, Make, clean, sh
from easel.testing.fleet import EngineServer, engine_server
from easel.testing.slurm import Slurm


@pytest.fixture(scope="module")
def server(slurm: Slurm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineServer]:
    home = tmp_path_factory.mktemp("home")
    engine = SlurmEngine(SlurmOptions(home / "slurm"), slurm.variables)
    with engine_server(home, engine) as made:
        yield made


class TestSlurm(ExecutorSuite):
    capacity_is_told = False

    @pytest.fixture
    def make(self, server: EngineServer) -> Iterator[Make]:
        def made(_name: str) -> Executor:
            return server.executor()

        yield made
        clean(server.executor())


@pytest.fixture
def requeueing(slurm: Slurm, tmp_path: Path) -> Iterator[EngineServer]:
    """Where the site's own options let Slurm put batch jobs back into its queue."""
    engine = SlurmEngine(SlurmOptions(tmp_path / "slurm", more=("--requeue",)), slurm.variables)
    with engine_server(tmp_path, engine) as made:
        yield made


def taken_away(heard: Listener, key: str) -> bool:
    """Returns whether the attempt ended by no fault of its own, whoever says so: its agent, when it still can."""
    last = heard.last(key)
    stopped = isinstance(last, AttemptEnded) and last.end is EndReason.STOPPED
    return stopped or heard.lost(key) is not None


@pytest.mark.parametrize("how", ["scontrol requeue", "preemption"])
def test_what_slurm_puts_back_into_its_queue_is_tried_again_by_us_and_once(
    slurm: Slurm, requeueing: EngineServer, how: str
) -> None:
    heard = Listener(requeueing.executor())
    heard.executor.start(sh("j", "sleep 1000"))
    heard.reached("j.1", "running")
    (number,) = slurm.run("squeue", "--noheader", "--partition=main", "--format=%i").split()
    if how == "preemption":
        slurm.push_out(number)
    else:
        slurm.run("scontrol", "requeue", number)
    heard.until(lambda: taken_away(heard, "j.1"))
    heard.executor.forget("j.1", over=False)
    heard.executor.start(sh("j", "echo again", attempt=2))
    heard.done("j.2")
    assert heard.log("j.2") == b"again\n"
    # The batch job that waits to start once more would have nothing to do: it is taken out of the queue.
    until(lambda: "JobState=CANCELLED" in slurm.run("scontrol", "show", "job", number))


def test_a_node_in_two_partitions_is_one_machine(slurm: Slurm, tmp_path: Path) -> None:
    for partition in ("", "main"):
        engine = SlurmEngine(SlurmOptions(tmp_path, partition), slurm.variables)
        assert [room.vcpu for room in engine.capacity()] == [2.0]
