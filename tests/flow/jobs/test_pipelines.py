"""Pipelines: order, reuse, failure, rerun."""

from __future__ import annotations

import pytest

from easel.declare.job import Command, JobSpec
from easel.declare.pipeline import PipelineStep
from easel.errors import InvalidInput
from easel.flow.jobs import pipelines
from easel.records.job import JobState
from easel.records.pipeline import Pipeline
from easel.serve.controller import Controller
from easel.testing.engine import SMALL, EngineUnderTest


def step(name: str, script: str, source: str | None = None, needs: tuple[str, ...] = ()) -> PipelineStep:
    return PipelineStep(
        name, JobSpec(name, Command(("sh", "-c", script)), input=source, resources=SMALL), needs
    )


def submit(engine: EngineUnderTest, *steps: PipelineStep, reuse: bool = True) -> Pipeline:
    with engine.store.write() as tx:
        return pipelines.submit_pipeline(tx, engine.people["ana"], "test", steps, reuse=reuse)


def finish(engine: EngineUnderTest, controller: Controller, pipeline: Pipeline) -> Pipeline:
    engine.finish(controller, *(step.job for step in pipeline.steps))
    with engine.store.read() as tx:
        return pipelines.look(tx, engine.people["ana"], pipeline.id)


COPY = "find input -type f -exec cat {} + > $EASEL_OUTPUT/all; cat $EASEL_OUTPUT/all"


def test_steps_run_in_order_each_on_the_output_of_the_one_before(either_engine: EngineUnderTest) -> None:
    controller = either_engine.controller()
    words = either_engine.upload({"words.txt": b"to be or not to be\n"}, "words")
    made = submit(
        either_engine,
        step("count", "cat input/*/all | wc -w", "step:clean"),
        step("clean", COPY, words),
        step("report", "echo after count", needs=("count",)),
    )
    assert [each.name for each in made.steps] == ["clean", "count", "report"]
    done = finish(either_engine, controller, made)
    assert done.state == "finished"
    clean, count, report = (each.job for each in done.steps)
    assert count.input_set == clean.output_set
    assert either_engine.log(count) == ["6"]
    moments = [clean.ended_at, count.started_at, count.ended_at, report.started_at]
    assert moments == sorted(moment for moment in moments if moment is not None)


def test_a_rerun_reuses_what_did_not_change_and_runs_what_did(engine: EngineUnderTest) -> None:
    controller = engine.controller()
    engine.upload({"a.txt": b"one\n"}, "raw")
    steps = (step("clean", COPY, "raw"), step("use", COPY, "step:clean"), step("other", "echo same"))
    first = finish(engine, controller, submit(engine, *steps))
    again = submit(engine, *steps)
    assert again.state == "finished"
    assert all(each.reused for each in again.steps)
    engine.upload({"a.txt": b"two\n"}, "raw")
    with engine.store.write() as tx:
        rerun = pipelines.rerun_pipeline(tx, engine.people["ana"], first.id)
    assert {each.name: each.reused for each in rerun.steps} == {"clean": False, "use": False, "other": True}
    done = finish(engine, controller, rerun)
    assert (done.state, done.parent_id) == ("finished", first.id)
    assert engine.log(next(each.job for each in done.steps if each.name == "use")) == ["two"]


def test_another_data_set_reruns_only_what_depends_on_it(engine: EngineUnderTest) -> None:
    controller = engine.controller()
    one = engine.upload({"a.txt": b"one\n"}, "one")
    two = engine.upload({"b.txt": b"two\n"}, "two")
    made = finish(engine, controller, submit(engine, step("a", COPY, one), step("b", "echo b")))
    with engine.store.write() as tx:
        rerun = pipelines.rerun_pipeline(tx, engine.people["ana"], made.id, inputs={"a": two})
    done = finish(engine, controller, rerun)
    assert [each.name for each in done.steps if not each.reused] == ["a"]


def test_what_needs_a_failed_step_fails_and_says_which(engine: EngineUnderTest) -> None:
    controller = engine.controller()
    made = submit(
        engine,
        step("bad", "exit 3"),
        step("next", "echo never", needs=("bad",)),
        step("last", "echo never", "step:next"),
        step("apart", "echo fine"),
    )
    done = finish(engine, controller, made)
    assert done.state == "failed"
    reasons = {each.name: (each.job.state, each.job.reason) for each in done.steps}
    assert reasons["next"] == (JobState.FAILED, "step 'bad', which it needs, ended failed")
    assert reasons["last"] == (JobState.FAILED, "step 'next', which it needs, ended failed")
    assert reasons["apart"][0] is JobState.FINISHED


def test_circles_strangers_and_twins_are_refused() -> None:
    for steps, said in (
        ([step("a", "x", needs=("b",)), step("b", "x", needs=("a",))], "circle"),
        ([step("a", "x", needs=("nobody",))], "no step"),
        ([step("a", "x"), step("a", "y")], "same name"),
        ([step("a", "x", "step:nobody")], "no step"),
        ([], "1 to"),
    ):
        with pytest.raises(InvalidInput, match=said):
            pipelines.order(steps)


def test_a_job_without_a_name_is_named_after_its_step(engine: EngineUnderTest) -> None:
    command = Command(("true",))
    made = submit(
        engine,
        PipelineStep("fold", JobSpec("job", command, resources=SMALL), ()),
        PipelineStep("plot", JobSpec("my plot", command, resources=SMALL), ()),
    )
    assert {each.name: each.job.name for each in made.steps} == {"fold": "fold", "plot": "my plot"}
