"""The provenance graph in SQL: edges between file sets, traced by recursive queries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from sqlalchemy import Select, and_, insert, select, union

from easel.ids import ProjectId
from easel.lake.access import Rights
from easel.records.lake import Edge, Kind
from easel.store.engine import Tx
from easel.store.lake.artifacts import readable
from easel.store.schema.lake import artifacts, job_reads, lineage
from easel.store.upsert import chunks, insert_or

_EDGE = (lineage.c.id, lineage.c.source, lineage.c.target, lineage.c.job)


class TraceDirection(StrEnum):
    BACKWARD = "backward"
    FORWARD = "forward"


def add_edges(tx: Tx, project_id: ProjectId, sources: Iterable[int], target: int, job: int | None) -> None:
    """Record that `target` was made from `sources`, by a job or by creating a set."""
    rows = [
        {"project_id": project_id, "source": source, "target": target, "job": job}
        for source in sorted(set(sources))
        if source != target
    ]
    if rows:
        tx.execute(insert(lineage), rows)


def neighbours(
    tx: Tx, project_id: ProjectId, node: int, direction: TraceDirection, rights: Rights
) -> list[Edge]:
    """One step."""
    near = lineage.c.target if direction is TraceDirection.BACKWARD else lineage.c.source
    far = lineage.c.source if direction is TraceDirection.BACKWARD else lineage.c.target
    query = (
        select(*_EDGE)
        .join(artifacts, artifacts.c.id == far)
        .where(lineage.c.project_id == project_id, near == node, readable(rights))
    )
    return [Edge(*row) for row in tx.execute(query.order_by(lineage.c.id))]


def reach(tx: Tx, node: int, direction: TraceDirection, rights: Rights) -> list[int]:
    """Artifact ids that can be reached from `node`, without it, in the order of age.

    The recursion keeps each node once, so a graph full of diamonds costs no more than its edges. A set that
    may not be read hides what lies behind it: the trace does not walk through.
    """
    near = lineage.c.target if direction is TraceDirection.BACKWARD else lineage.c.source
    far = lineage.c.source if direction is TraceDirection.BACKWARD else lineage.c.target
    seen = select(far.label("id")).where(near == node)
    if rights.sets:
        seen = seen.join(artifacts, and_(artifacts.c.id == far, readable(rights)))
    reached = seen.cte("reached", recursive=True)
    step = select(far).join(reached, near == reached.c.id)
    if rights.sets:
        step = step.join(artifacts, and_(artifacts.c.id == far, readable(rights)))
    reached = reached.union(step)
    return list(tx.execute(select(reached.c.id).order_by(reached.c.id)).scalars())


def edges_touching(
    tx: Tx, project_id: ProjectId, nodes: Sequence[int], direction: TraceDirection
) -> list[Edge]:
    """The edges by which a trace in `direction` arrives at `nodes`."""
    far = lineage.c.source if direction is TraceDirection.BACKWARD else lineage.c.target
    found: list[Edge] = []
    for some in chunks(nodes):
        query = select(*_EDGE).where(lineage.c.project_id == project_id, far.in_(some))
        found += [Edge(*row) for row in tx.execute(query)]
    return sorted(found, key=lambda edge: edge.id)


def page_of_edges(tx: Tx, project_id: ProjectId, rights: Rights, after: int, limit: int) -> list[Edge]:
    """The whole graph, edge by edge."""
    query: Select[*tuple[int, ...]] = select(*_EDGE).where(
        lineage.c.project_id == project_id, lineage.c.id > after
    )
    if rights.sets:
        seen = select(artifacts.c.id).where(artifacts.c.project_id == project_id, readable(rights))
        query = query.where(lineage.c.source.in_(seen), lineage.c.target.in_(seen))
    return [Edge(*row) for row in tx.execute(query.order_by(lineage.c.id).limit(limit))]


def add_reads(tx: Tx, job: int, file_sets: Iterable[int]) -> None:
    """A job reads these sets; repeating is harmless."""
    for file_set in sorted(set(file_sets)):
        tx.execute(insert_or(tx, job_reads).values(job=job, file_set=file_set).on_conflict_do_nothing())


def reads_of(tx: Tx, job: int) -> list[int]:
    query = select(job_reads.c.file_set).where(job_reads.c.job == job)
    return list(tx.execute(query.order_by(job_reads.c.file_set)).scalars())


def used_by_jobs(tx: Tx, project_id: ProjectId) -> set[int]:
    """File sets that some job reads or wrote."""
    here = and_(artifacts.c.project_id == project_id, artifacts.c.kind == Kind.FILE_SET)
    read = select(job_reads.c.file_set).join(artifacts, artifacts.c.id == job_reads.c.file_set).where(here)
    made = select(artifacts.c.id).where(here, artifacts.c.made_by.is_not(None))
    return set(tx.execute(union(read, made)).scalars())
