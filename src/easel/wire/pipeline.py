"""Pipelines and their steps."""

from __future__ import annotations

from typing import Annotated

from easel.wire.fields import Label, Slug
from easel.wire.job import JobFields, Reference
from easel.wire.model import Answer, Field, Moment, Request


class StepFields(Request):
    name: Slug
    job: JobFields
    needs: Annotated[
        list[Slug], Field(max_length=100, description="An input `step:NAME` needs NAME without saying so")
    ] = Field(default_factory=list)


class SubmitPipeline(Request):
    name: Label = "pipeline"
    steps: Annotated[list[StepFields], Field(min_length=1, max_length=1000)]
    reuse: Annotated[bool, Field(description="Reuse outputs of steps that ran on the same versions")] = True


class RerunPipeline(Request):
    inputs: dict[Slug, Reference] = Field(
        default_factory=dict, max_length=1000, description="Other inputs, by step"
    )
    reuse: bool = True


class PipelineStep(Answer):
    name: str
    needs: list[str]
    reused: bool
    job_id: str
    state: str
    reason: str | None
    output_set: str | None


class Pipeline(Answer):
    id: str
    name: str
    state: Annotated[str, Field(description="running, finished or failed")]
    user_id: str
    parent_id: str | None
    created_at: Moment
    steps: list[PipelineStep]
