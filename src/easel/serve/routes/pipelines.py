"""Pipelines: dependent jobs submitted as one."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Response

from easel.declare.pipeline import PipelineStep
from easel.declare.verbs import Verb
from easel.flow.jobs import pipelines
from easel.flow.jobs.known_secrets import check_secrets
from easel.records import pipeline as records
from easel.serve.access import Member, State, acts
from easel.serve.creating import Create
from easel.serve.paging import Paging
from easel.serve.router import Router
from easel.serve.state import Tx
from easel.wire import pipeline as wire
from easel.wire.model import Page

router = Router(prefix="/api/v1/projects/{project}/pipelines", tags=["jobs"])

PipelineId = Annotated[str, Path(max_length=60, examples=["pip_01jc"])]


def shown(found: records.Pipeline) -> wire.Pipeline:
    steps = [
        wire.PipelineStep(
            name=step.name,
            needs=list(step.needs),
            reused=step.reused,
            job_id=step.job.id,
            state=step.job.state,
            reason=step.job.reason,
            output_set=step.job.output_set,
        )
        for step in found.steps
    ]
    return wire.Pipeline(
        id=found.id,
        name=found.name,
        state=found.state,
        user_id=found.user_id,
        parent_id=found.parent_id,
        created_at=found.created_at,
        steps=steps,
    )


@router.post("", response_model=wire.Pipeline, status_code=201)
@acts(Verb.RUN)
def submit_pipeline(state: State, caller: Member, create: Create, body: wire.SubmitPipeline) -> Response:
    """Submit steps that depend on one another. Those whose outcome is known are not run again."""
    steps = [PipelineStep(step.name, step.job.spec(), tuple(step.needs)) for step in body.steps]
    check_secrets(state.secrets, caller.project_id, [step.job for step in steps])

    def make(tx: Tx) -> wire.Pipeline:
        return shown(pipelines.submit_pipeline(tx, caller, body.name, steps, reuse=body.reuse))

    return create(caller, body, make)


@router.get("", response_model=Page[wire.Pipeline])
def list_pipelines(state: State, caller: Member, page: Paging) -> Page[wire.Pipeline]:
    """The project's pipelines, newest first."""
    with state.store.read() as tx:
        found = pipelines.list_pipelines(tx, caller, page)
        items = [shown(each) for each in found.items]
    return Page(items=items, next_cursor=found.next_cursor)


@router.get("/{pipeline}", response_model=wire.Pipeline)
def show_pipeline(state: State, caller: Member, pipeline: PipelineId) -> wire.Pipeline:
    """One pipeline and how far each of its steps is."""
    with state.store.read() as tx:
        return shown(pipelines.look(tx, caller, pipeline))


@router.post("/{pipeline}/rerun", response_model=wire.Pipeline, status_code=201)
@acts(Verb.RUN)
def rerun_pipeline(
    caller: Member, create: Create, pipeline: PipelineId, body: wire.RerunPipeline
) -> Response:
    """Run again what changed upstream, or on other inputs; the rest is reused."""

    def make(tx: Tx) -> wire.Pipeline:
        return shown(
            pipelines.rerun_pipeline(tx, caller, pipeline, inputs=dict(body.inputs), reuse=body.reuse)
        )

    return create(caller, body, make)
