"""What may go wrong with jobs, really done: every job ends once, in a state that tells the truth."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from easel.declare.job import RetryRule
from easel.declare.resources import Resources
from easel.errors import QuotaExhausted
from easel.flow.jobs.control import kill_job
from easel.flow.jobs.reports import AttemptReport
from easel.flow.jobs.submit import Submission, submit_jobs
from easel.records.attempt import AttemptKey, EndReason
from easel.records.job import Job, JobState
from easel.run.journal import read
from easel.serve.controller import Controller, Pace
from easel.store import jobs
from easel.testing.clock import FakeClock
from easel.testing.engine import EngineUnderTest, alive, until

BIG = os.urandom(1 << 20) * 60
"""Enough that moving it takes a while."""


def job_in(engine: EngineUnderTest, controller: Controller, state: JobState, **fields: Any) -> Job:
    """A job that is at this state now, or just was: the faults below are right either way."""
    if state is JobState.DOWNLOADING:
        reference = engine.upload({"big.bin": BIG}, "big")
        job = engine.submit("sleep", "1000", input=reference, **fields)
    elif state is JobState.UPLOADING:
        script = "head -c 60000000 /dev/urandom > $EASEL_OUTPUT/big.bin"
        job = engine.submit("sh", "-c", script, resources=Resources(1.0, 1024), **fields)
    else:
        job = engine.submit("sleep", "1000", **fields)
    reached = {state, JobState.RUNNING, JobState.UPLOADING, JobState.FINISHED}
    if state in (JobState.RUNNING, JobState.UPLOADING):
        reached = {state, JobState.FINISHED}
    engine.turn_until(controller, lambda: engine.job(job).state in reached)
    return job


def settle(engine: EngineUnderTest, controller: Controller, job: Job) -> Job:
    """Let it end by itself, or end it, and check that nothing of it is left."""
    engine.turn_until(controller, lambda: engine.job(job).state in (JobState.RUNNING, *_OVER))
    if engine.job(job).state is JobState.RUNNING and "sleep" in str(job.spec.run):
        with engine.store.write() as tx:
            kill_job(tx, engine.people["ana"], job.id, "enough")
    (ended,) = engine.finish(controller, job)
    until(lambda: not engine.processes(job))
    terminal = [kind for kind in engine.events(job) if kind in ("job.finished", "job.failed", "job.killed")]
    assert terminal == [f"job.{ended.state.value}"]
    return ended


_OVER = (JobState.FINISHED, JobState.FAILED, JobState.KILLED)
EVERY_STATE = [JobState.DOWNLOADING, JobState.RUNNING, JobState.UPLOADING]


@pytest.mark.parametrize("state", EVERY_STATE)
def test_kill_9_of_the_agent_repeats_the_job_once(engine: EngineUnderTest, state: JobState) -> None:
    controller = engine.controller()
    job = job_in(engine, controller, state)
    agent, was = engine.agent_pid(job), engine.job(job).state
    os.kill(agent, signal.SIGKILL)
    engine.turn_until(controller, lambda: engine.job(job).attempt == 2 or engine.job(job).state in _OVER)
    ended = settle(engine, controller, job)
    assert ended.attempt == 2 or was is JobState.FINISHED
    assert ended.state in ((JobState.FINISHED,) if state is JobState.UPLOADING else (JobState.KILLED,))


def test_without_a_retry_a_lost_job_fails_and_says_so(engine: EngineUnderTest) -> None:
    controller = engine.controller()
    job = job_in(engine, controller, JobState.RUNNING, retry=RetryRule(lost=0))
    os.kill(engine.agent_pid(job), signal.SIGKILL)
    (ended,) = engine.finish(controller, job)
    assert (ended.state, ended.reason) == (JobState.FAILED, "its agent died")
    until(lambda: not engine.processes(job))


def test_a_command_that_somebody_killed_says_so_in_a_sandbox_too(engine: EngineUnderTest) -> None:
    controller = engine.controller()
    job = job_in(engine, controller, JobState.RUNNING)
    child = psutil.Process(engine.agent_pid(job)).children()[0]
    child.kill()
    (ended,) = engine.finish(controller, job)
    assert (ended.state, ended.reason) == (JobState.FAILED, "exit code -9 (SIGKILL)")


def test_a_command_and_its_agent_that_are_told_to_end_together_are_tried_again(
    engine: EngineUnderTest,
) -> None:
    """As a batch system does when it wants its machine back; the command may hear of it first."""
    controller = engine.controller()
    job = job_in(engine, controller, JobState.RUNNING)
    agent = psutil.Process(engine.agent_pid(job))
    until(lambda: any(child.name() == "sleep" for child in agent.children(recursive=True)))
    for each in [*agent.children(recursive=True), agent]:
        with contextlib.suppress(psutil.NoSuchProcess):
            each.terminate()
    engine.turn_until(
        controller, lambda: engine.job(job).state is JobState.RUNNING and engine.job(job).attempt == 2
    )
    assert "job.failed" not in engine.events(job)
    settle(engine, controller, job)


@pytest.mark.parametrize("state", EVERY_STATE)
def test_kill_9_of_the_worker_leaves_the_job_running_and_the_next_worker_finds_it(
    engine: EngineUnderTest, state: JobState
) -> None:
    controller = engine.controller()
    job = job_in(engine, controller, state)
    worker = engine.worker_pid
    assert worker is not None
    os.kill(worker, signal.SIGKILL)
    ended = settle(engine, controller, job)
    assert ended.attempt == 1
    assert ended.state is (JobState.FINISHED if state is JobState.UPLOADING else JobState.KILLED)


@pytest.mark.parametrize("state", EVERY_STATE)
def test_a_controller_that_dies_is_replaced_and_the_job_goes_on(
    engine: EngineUnderTest, state: JobState
) -> None:
    first = engine.controller(pace=Pace(poll=0.02, reconnect=0.05, lease=0.3))
    job = job_in(engine, first, state)
    second = engine.controller(pace=Pace(poll=0.02, reconnect=0.05, lease=0.3))
    ended = settle(engine, second, job)
    assert ended.attempt == 1
    assert ended.state is (JobState.FINISHED if state is JobState.UPLOADING else JobState.KILLED)
    # The first one wakes up late and must find itself fenced off.
    first.turn()
    assert first.fence is None or first.fence > 1


def test_a_controller_that_was_thought_dead_cannot_overwrite_a_success(
    either_engine: EngineUnderTest,
) -> None:
    old = either_engine.controller(pace=Pace(poll=0.02, reconnect=0.05, lease=0.3))
    job = job_in(either_engine, old, JobState.UPLOADING)
    new = either_engine.controller(pace=Pace(poll=0.02, reconnect=0.05, lease=0.3))
    (ended,) = either_engine.finish(new, job)
    assert ended.state is JobState.FINISHED
    old._backlog.append(
        AttemptReport(AttemptKey(job.id, 1), gone=(EndReason.DEVICE_LOST, "I thought that it had died"))
    )
    old._renew_at = float("inf")  # it believes that its lease still holds
    old.turn()
    assert either_engine.job(job) == ended


def test_a_reboot_ends_everything_and_jobs_are_tried_again(engine: EngineUnderTest) -> None:
    controller = engine.controller()
    running = [job_in(engine, controller, JobState.RUNNING) for _ in range(2)]
    quick = engine.submit("echo", "done")
    (before,) = engine.finish(controller, quick)
    worker = engine.worker_pid
    assert worker is not None
    for pid in [worker, *(engine.agent_pid(job) for job in running)]:
        os.kill(pid, signal.SIGKILL)
    for job in running:
        for pid in engine.processes(job):
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
    after = engine.controller()
    for job in running:
        engine.turn_until(after, lambda job=job: engine.job(job).attempt == 2)  # type: ignore[misc]
        assert settle(engine, after, job).state is JobState.KILLED
    assert engine.job(quick) == before


def test_silence_of_a_minute_counts_as_lost_and_the_late_result_is_fenced_off(
    either_engine: EngineUnderTest,
) -> None:
    """The worker is really silent (stopped by a signal) while the job's agent goes on and ends it; only the minute
    is not waited for. When the worker speaks again, the first attempt's result comes after the second began.
    """
    engine, clock = either_engine, FakeClock()
    controller = engine.controller()
    controller.clock = clock

    def turn_until(done: Callable[[], bool]) -> None:
        limit = time.monotonic() + 60
        while not done():
            assert time.monotonic() < limit
            controller.turn()
            clock.advance(0.1)
            controller.wake.wait(0.02)
            controller.wake.clear()

    def gate(attempt: int) -> Path:
        return engine.home / "run" / "attempts" / f"{job.id}.{attempt}" / "work" / "go"

    script = "until [ -e go ]; do sleep 0.02; done; echo result > $EASEL_OUTPUT/file"
    job = engine.submit("sh", "-c", script)
    turn_until(lambda: engine.job(job).state is JobState.RUNNING)
    worker = engine.worker_pid
    assert worker is not None
    os.kill(worker, signal.SIGSTOP)
    try:
        gate(1).touch()
        journal = engine.home / "run" / "attempts" / f"{job.id}.1.journal"
        until(lambda: any(entry.last for entry in read(journal, 0)[0]))
        clock.advance(61.0)
        turn_until(lambda: engine.job(job).attempt == 2)
    finally:
        os.kill(worker, signal.SIGCONT)
    turn_until(lambda: "job.late_report" in engine.events(job))
    assert engine.job(job).output_set is None
    turn_until(lambda: engine.job(job).state is JobState.RUNNING)
    gate(2).touch()
    turn_until(lambda: engine.job(job).state is JobState.FINISHED)
    assert engine.job(job).attempt == 2
    assert engine.events(job).count("job.finished") == 1


def test_a_clock_set_back_an_hour_neither_loses_jobs_nor_blocks_the_lease(engine: EngineUnderTest) -> None:
    clock = FakeClock(start=engine.store.clock.now())
    engine.store.clock = clock
    first = engine.controller(pace=Pace(poll=0.02, reconnect=0.05, lease=0.3))
    job = job_in(engine, first, JobState.RUNNING)
    clock.set_wall_clock(clock.now() - timedelta(hours=1))
    quick = engine.submit("echo", "later")
    (done,) = engine.finish(first, quick)
    assert done.state is JobState.FINISHED
    second = engine.controller(pace=Pace(poll=0.02, reconnect=0.05, lease=0.3))
    engine.turn_until(second, lambda: second.fence is not None)
    assert settle(engine, second, job).state is JobState.KILLED


def test_sigterm_ignored_and_a_double_fork_are_ended_all_the_same(engine: EngineUnderTest) -> None:
    controller = engine.controller()
    forever = "while :; do sleep 1; done"
    script = f"trap '' TERM; (setsid sh -c 'trap \"\" TERM; {forever}' &); echo up; {forever}"
    job = engine.submit("sh", "-c", script)
    engine.turn_until(controller, lambda: engine.log(job) == ["up"])
    with engine.store.write() as tx:
        kill_job(tx, engine.people["ana"], job.id)
    (ended,) = engine.finish(controller, job)
    assert ended.state is JobState.KILLED
    assert engine.processes(job) == []


def test_a_job_that_fills_its_disk_is_stopped_and_says_so(engine: EngineUnderTest) -> None:
    from easel.flow.jobs.orders import OrderLimits

    controller = engine.controller(limits=OrderLimits(disk_mb=20))
    script = "i=0; while head -c 5000000 /dev/zero > $EASEL_OUTPUT/$i; do i=$((i+1)); sleep 0.1; done"
    job = engine.submit("sh", "-c", script)
    (ended,) = engine.finish(controller, job)
    assert (ended.state, ended.reason) == (JobState.FAILED, "the disk limit of 20 MB was reached")
    assert ended.output_set is None


def test_a_full_disk_under_the_attempts_ends_the_job_with_its_log(tmp_path: Path) -> None:
    import subprocess

    from easel.testing.engine import running

    home = tmp_path / "home"
    attempts = home / "run" / "attempts"
    attempts.mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(attempts)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("only root may mount a small disk")
    try:
        with running(home) as engine:
            controller = engine.controller()
            job = engine.submit("sh", "-c", "echo begun; cat /dev/zero > $EASEL_OUTPUT/all || exit 5")
            (ended,) = engine.finish(controller, job)
            assert (ended.state, ended.exit_code) == (JobState.FAILED, 5)
            assert engine.log(job)[0] == "begun"
    finally:
        subprocess.run(["umount", "-l", str(attempts)], check=True)


def test_a_hundred_submits_racing_at_the_quota_let_one_through(either_engine: EngineUnderTest) -> None:
    caller = either_engine.people["ana"]
    spec = either_engine.submit("true").spec
    with either_engine.store.write() as tx:
        submit_jobs(tx, caller, [Submission(spec)] * 8)
    limit = 10

    def one(_: int) -> bool:
        try:
            with either_engine.store.write() as tx:
                submit_jobs(tx, caller, [Submission(spec)], max_queued=limit)
        except QuotaExhausted:
            return False
        return True

    with ThreadPoolExecutor(20) as pool:
        assert sum(pool.map(one, range(100))) == 1
    with either_engine.store.read() as tx:
        assert jobs.count_by_state(tx, caller.project_id) == {"queued": limit}


def test_every_job_of_a_crowd_ends_once_while_workers_and_controllers_die(
    either_engine: EngineUnderTest,
) -> None:
    pace = Pace(poll=0.02, reconnect=0.05, lease=0.3)
    controller = either_engine.controller(pace=pace)
    crowd = [either_engine.trial("noop", retry=RetryRule(lost=5)) for _ in range(90)]
    for killed in range(3):
        reached = 20 * (killed + 1)
        either_engine.turn_until(controller, lambda least=reached: _finished(either_engine) >= least)  # type: ignore[misc]
        worker = either_engine.worker_pid
        if worker is not None:
            os.kill(worker, signal.SIGKILL)
        controller = either_engine.controller(pace=pace)
    ended = either_engine.finish(controller, *crowd)
    assert {job.state for job in ended} == {JobState.FINISHED}
    for job in crowd[:20]:
        assert either_engine.events(job).count("job.finished") == 1
    assert len({job.output_set for job in ended}) == len(crowd)


def _finished(engine: EngineUnderTest) -> int:
    with engine.store.read() as tx:
        return jobs.count_by_state(tx, engine.people["ana"].project_id).get("finished", 0)
