"""Jobs from submit to end, through a real worker."""

from __future__ import annotations

from easel.declare.resources import Resources
from easel.records.job import JobState
from easel.testing.engine import Engine


def test_a_command_runs_and_its_log_and_output_are_kept(engine: Engine) -> None:
    controller = engine.controller()
    job = engine.submit("sh", "-c", "echo hello; echo oops >&2; echo 42 > $EASEL_OUTPUT/answer.txt")
    (done,) = engine.finish(controller, job)
    assert (done.state, done.exit_code, done.reason) == (JobState.FINISHED, 0, None)
    assert sorted(engine.log(job)) == ["hello", "oops"]
    assert done.output_set == f"{job.id}-output:1"
    assert done.usage is not None


def test_a_trial_returns_its_result(engine: Engine) -> None:
    controller = engine.controller()
    (done,) = engine.finish(controller, engine.trial("add", arguments={"a": 2, "b": 3}))
    assert done.state is JobState.FINISHED, done.reason
    assert done.result == {"sum": 5, "read": []}


def test_exit_3_fails_and_uploads_nothing(engine: Engine) -> None:
    controller = engine.controller()
    job = engine.submit("sh", "-c", "echo before; echo x > $EASEL_OUTPUT/x; exit 3")
    (done,) = engine.finish(controller, job)
    assert (done.state, done.exit_code, done.output_set) == (JobState.FAILED, 3, None)
    assert done.reason == "exit code 3"
    assert engine.log(job) == ["before"]


def test_a_job_that_reaches_its_memory_limit_says_so(engine: Engine) -> None:
    controller = engine.controller()
    job = engine.submit("python", "-c", "x = b'x' * (400 << 20)", resources=Resources(0.5, 128))
    (done,) = engine.finish(controller, job)
    assert done.state is JobState.FAILED
    assert done.reason == "the memory limit of 128 MB was reached"
