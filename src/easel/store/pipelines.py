"""Queries on pipelines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pydantic import TypeAdapter
from sqlalchemy import insert, select

from easel.declare.page import PageRequest
from easel.declare.pipeline import PipelineStep
from easel.errors import NotFound
from easel.ids import JobId, ProjectId, UserId
from easel.store.engine import Tx
from easel.store.paging import Collection, Page, fetch
from easel.store.schema.jobs import pipelines

_STEPS: TypeAdapter[tuple[PipelineStep, ...]] = TypeAdapter(tuple[PipelineStep, ...])
PIPELINES = Collection(
    {"id": pipelines.c.id, "name": pipelines.c.name, "created_at": pipelines.c.created_at}, "id", "-id"
)


@dataclass(frozen=True, slots=True)
class NewPipeline:
    """`members` maps each step to its job, upstream first; `reused` are the steps that did not run again."""

    id: str
    project_id: ProjectId
    user_id: UserId
    name: str
    steps: tuple[PipelineStep, ...]
    members: Mapping[str, JobId]
    reused: frozenset[str]
    parent_id: str | None


@dataclass(frozen=True, slots=True)
class StoredPipeline:
    id: str
    user_id: UserId
    name: str
    steps: tuple[PipelineStep, ...]
    members: Mapping[str, JobId]
    reused: frozenset[str]
    parent_id: str | None
    created_at: datetime


def add(tx: Tx, new: NewPipeline) -> None:
    spec = {
        "steps": _STEPS.dump_python(new.steps, mode="json"),
        "members": list(new.members.items()),
        "reused": sorted(new.reused),
    }
    tx.execute(
        insert(pipelines).values(
            id=new.id,
            project_id=new.project_id,
            user_id=new.user_id,
            name=new.name,
            spec=spec,
            parent_id=new.parent_id,
            created_at=tx.now,
        )
    )


def find(tx: Tx, project_id: ProjectId, pipeline_id: str) -> StoredPipeline:
    row = tx.execute(
        select(pipelines).where(pipelines.c.project_id == project_id, pipelines.c.id == pipeline_id)
    ).one_or_none()
    if row is None:
        raise NotFound(f"there is no pipeline {pipeline_id[:60]!r} in this project")
    return StoredPipeline(
        row.id,
        UserId(row.user_id),
        row.name,
        _STEPS.validate_python(row.spec["steps"]),
        {step: JobId(job) for step, job in row.spec["members"]},
        frozenset(row.spec["reused"]),
        row.parent_id,
        row.created_at,
    )


def list_ids(tx: Tx, project_id: ProjectId, request: PageRequest) -> Page[str]:
    query = select(pipelines.c.id, pipelines.c.name, pipelines.c.created_at)
    found = fetch(tx, query.where(pipelines.c.project_id == project_id), PIPELINES, request)
    return found.map(lambda row: str(row.id))
