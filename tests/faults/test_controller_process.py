"""`kill -9` of a controller that is a process of its own, at every state of a job."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from easel.declare.resources import Resources
from easel.flow.jobs.control import kill_job
from easel.records.job import TERMINAL, Job, JobState
from easel.serve.hosting import hosted
from easel.store import job_queues
from easel.testing.engine import EngineUnderTest, until

BIG = os.urandom(1 << 20) * 40
HELD = JobState.RUNNING


@contextmanager
def controller_process(engine: EngineUnderTest) -> Iterator[None]:
    """`easel controller`, killed with -9 at the end. The worker that it started lives on, as do its jobs."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("EASEL_")}
    environment |= {
        "EASEL_HOME": str(engine.home),
        "EASEL_CONTROLLER_LEASE_S": "1",
        "EASEL_WARM_TRIALS": "false",
        "EASEL_WORKER_VCPU": "2",
        "EASEL_WORKER_MEMORY_MB": "4096",
    }
    command = [sys.executable, "-m", "easel.cli.main", "controller", "--own-worker"]
    with (engine.home / "controller.log").open("ab") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def paused(engine: EngineUnderTest, on: bool) -> None:
    ana = engine.people["ana"]
    with engine.store.write() as tx:
        job_queues.set_queue(tx, ana.project_id, ana.user.id, max_active=None, paused=on)


def test_kill_9_of_the_controller_at_every_state_loses_nothing_and_repeats_nothing(
    engine: EngineUnderTest,
) -> None:
    reference = engine.upload({"big.bin": BIG}, "big")
    whole = Resources(2.0, 512)
    sleeper = engine.submit("sleep", "1000")

    def is_at(job: Job, *states: JobState) -> Callable[[], bool]:
        return lambda: engine.job(job).state in states

    with controller_process(engine):
        until(is_at(sleeper, HELD), 120)
    # Launching: no room beside the sleeper.
    waiting = engine.submit("echo", "had room at last", resources=whole)
    with controller_process(engine):
        until(is_at(waiting, JobState.LAUNCHING), 120)
    # Queued: nothing of the queue may launch; the controller is killed while it leads all the same.
    paused(engine, True)
    queued = engine.submit("echo", "resumed")
    with engine.store.write() as tx:
        kill_job(tx, engine.people["ana"], sleeper.id, "enough")
    with controller_process(engine):
        until(is_at(waiting, *TERMINAL), 120)
    assert is_at(queued, JobState.QUEUED)()
    paused(engine, False)
    # Downloading and uploading pass quickly: there, or just past it, both must end well.
    downloading = engine.submit("echo", "has it", input=reference)
    with controller_process(engine):
        until(is_at(downloading, JobState.DOWNLOADING, JobState.RUNNING, JobState.UPLOADING, *TERMINAL), 120)
    script = "head -c 40000000 /dev/urandom > $EASEL_OUTPUT/big.bin"
    uploading = engine.submit("sh", "-c", script, resources=Resources(1.0, 512))
    with controller_process(engine):
        until(is_at(uploading, JobState.UPLOADING, *TERMINAL), 120)
    jobs = [sleeper, waiting, queued, downloading, uploading]
    with controller_process(engine):
        until(lambda: all(engine.job(job).state in TERMINAL for job in jobs), 120)
    ended = [engine.job(job) for job in jobs]
    assert [job.state for job in ended] == [JobState.KILLED] + [JobState.FINISHED] * 4
    assert [job.attempt for job in ended] == [1] * 5
    for job in ended:
        assert engine.events(job).count(f"job.{job.state.value}") == 1
        until(lambda job=job: not engine.processes(job))  # type: ignore[misc]


def test_whoever_stood_by_and_is_stopped_leaves_the_jobs_of_the_one_in_charge_alone(
    engine: EngineUnderTest,
) -> None:
    leader = engine.controller()
    job = engine.submit("sleep", "1000")
    engine.turn_until(leader, lambda: engine.job(job).state is HELD)
    worker = engine.worker_pid
    standby = engine.controller()
    with hosted(standby):
        until(lambda: standby._watched is not None)
    assert engine.worker_pid == worker
    with engine.store.write() as tx:
        kill_job(tx, engine.people["ana"], job.id, "enough")
    (ended,) = engine.finish(leader, job)
    assert (ended.state, ended.attempt) == (JobState.KILLED, 1)
