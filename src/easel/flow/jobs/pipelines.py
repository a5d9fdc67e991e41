"""Pipelines: dependent jobs submitted as one, of which only those run whose outcome is not known already.

A step is reused when a finished job of the project ran the same thing on the same versions and its output is
still there; that is what provenance knows. A rerun submits the same steps again: what changed upstream, or was
replaced, runs; the rest is reused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter

from easel.declare.job import JobSpec
from easel.declare.names import label, slug
from easel.declare.page import PageRequest
from easel.declare.pipeline import PipelineStep
from easel.errors import InvalidInput, NotFound
from easel.flow.jobs import files
from easel.flow.jobs.submit import UPSTREAM, Submission, submit_jobs
from easel.ids import JobId
from easel.records.identity import Caller
from easel.records.job import Job
from easel.records.pipeline import Pipeline, StepState
from easel.store import job_specs, jobs, pipelines
from easel.store.engine import Tx
from easel.store.paging import Page

MAX_STEPS = 1000
UNNAMED = "job"
"""The name of a job that was given none."""


@dataclass(frozen=True, slots=True)
class _Reused:
    job: JobId
    output: str


def submit_pipeline(
    tx: Tx,
    caller: Caller,
    name: str,
    steps: Sequence[PipelineStep],
    *,
    reuse: bool = True,
    parent_id: str | None = None,
) -> Pipeline:
    """All steps or none. Steps whose outcome is known are not run again, unless `reuse` is off."""
    ordered = order(steps)
    pipeline_id = tx.mint("pip")
    ran: dict[str, JobId] = {}
    known: dict[str, _Reused] = {}
    wanted: list[Submission] = []
    for step in ordered:
        found = _known(tx, caller, step, ran, known) if reuse else None
        if found is not None:
            known[step.name] = found
            continue
        job_id = JobId(tx.mint("job"))
        ran[step.name] = job_id
        wanted.append(
            Submission(
                _named(step),
                pipeline_id=pipeline_id,
                step=step.name,
                needs={needed: ran[needed] for needed in needs_of(step) if needed in ran},
                ready={needed: known[needed].output for needed in needs_of(step) if needed in known},
                id=job_id,
            )
        )
    members = {**ran, **{step: reused.job for step, reused in known.items()}}
    pipelines.add(
        tx,
        pipelines.NewPipeline(
            pipeline_id,
            caller.project_id,
            caller.user.id,
            label(name, "a pipeline's name"),
            tuple(steps),
            {step.name: members[step.name] for step in ordered},
            frozenset(known),
            parent_id,
        ),
    )
    if wanted:
        submit_jobs(tx, caller, wanted)
    body = {"name": name, "steps": len(ordered), "reused": sorted(known)}
    tx.emit("pipeline.submitted", pipeline_id, project_id=caller.project_id, actor=caller.user.id, body=body)
    return look(tx, caller, pipeline_id)


def rerun_pipeline(
    tx: Tx, caller: Caller, pipeline_id: str, *, inputs: Mapping[str, str] | None = None, reuse: bool = True
) -> Pipeline:
    """The same steps on what their references mean now, or on other inputs: `inputs[step]` is a file set."""
    found = pipelines.find(tx, caller.project_id, pipeline_id)
    unknown = set(inputs or {}) - {step.name for step in found.steps}
    if unknown:
        raise InvalidInput(f"there is no step {sorted(unknown)[0]!r} in pipeline {found.name!r}")
    steps = [
        replace(step, job=replace(step.job, input=inputs[step.name]))
        if inputs and step.name in inputs
        else step
        for step in found.steps
    ]
    return submit_pipeline(tx, caller, found.name, steps, reuse=reuse, parent_id=found.id)


def look(tx: Tx, caller: Caller, pipeline_id: str) -> Pipeline:
    """A pipeline with the state of each step."""
    found = pipelines.find(tx, caller.project_id, pipeline_id)
    ran = {job.id: job for job in jobs.find_many(tx, caller.project_id, sorted(set(found.members.values())))}
    states = tuple(
        StepState(name, ran[job], reused=name in found.reused, needs=_needs(found.steps, name))
        for name, job in found.members.items()
    )
    return Pipeline(found.id, found.name, found.user_id, found.parent_id, found.created_at, states)


def list_pipelines(tx: Tx, caller: Caller, page: PageRequest) -> Page[Pipeline]:
    """Returns the project's pipelines, newest first."""
    return pipelines.list_ids(tx, caller.project_id, page).map(lambda each: look(tx, caller, each))


def order(steps: Sequence[PipelineStep]) -> list[PipelineStep]:
    """Upstream first. Names must be unique, and needs must name steps, without a circle."""
    if not 1 <= len(steps) <= MAX_STEPS:
        raise InvalidInput(f"a pipeline has 1 to {MAX_STEPS} steps, not {len(steps)}")
    named = {slug(step.name, "step"): step for step in steps}
    if len(named) < len(steps):
        raise InvalidInput("two steps of a pipeline have the same name: rename one")
    for step in steps:
        missing = [needed for needed in needs_of(step) if needed not in named]
        if missing:
            raise InvalidInput(f"step {step.name!r} needs {missing[0]!r}, which is no step of this pipeline")
    try:
        return [
            named[name] for name in TopologicalSorter({s.name: needs_of(s) for s in steps}).static_order()
        ]
    except CycleError as error:
        circle = " → ".join(error.args[1])
        raise InvalidInput(f"the steps need each other in a circle: {circle}") from error


def needs_of(step: PipelineStep) -> tuple[str, ...]:
    source = step.job.input or ""
    implied = [source.removeprefix(UPSTREAM)] if source.startswith(UPSTREAM) else []
    return tuple(dict.fromkeys([*step.needs, *implied]))


def _needs(steps: Sequence[PipelineStep], name: str) -> tuple[str, ...]:
    return next(needs_of(step) for step in steps if step.name == name)


def _known(
    tx: Tx, caller: Caller, step: PipelineStep, ran: Mapping[str, JobId], known: Mapping[str, _Reused]
) -> _Reused | None:
    """A finished job that did this very thing, if there is one; never when something upstream runs."""
    if any(needed in ran for needed in needs_of(step)):
        return None
    source = step.job.input
    if source is not None and source.startswith(UPSTREAM):
        source = known[source.removeprefix(UPSTREAM)].output
    pinned = str(files.pin_set(tx, caller, source)) if source else None
    code = files.pin_code(tx, caller, step.job.code).reference if step.job.code else None
    for job in jobs.same_work(tx, caller.project_id, job_specs.signature(step.job, code, pinned)):
        if _output_is_there(tx, caller, job):
            assert job.output_set is not None
            return _Reused(job.id, job.output_set)
    return None


def _output_is_there(tx: Tx, caller: Caller, job: Job) -> bool:
    if job.output_set is None:
        return False
    try:
        return files.pin_set(tx, caller, job.output_set).artifact.dropped_at is None
    except NotFound:
        return False


def _named(step: PipelineStep) -> JobSpec:
    """Returns the step's job, named after the step where it has no name of its own."""
    return replace(step.job, name=step.name) if step.job.name == UNNAMED else step.job
