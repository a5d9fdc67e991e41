"""Jobs and their outputs in the lake's catalogue, many at a time: as few statements for a thousand as for one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Table, insert, select
from sqlalchemy.sql.dml import ReturningInsert

from easel.ids import JobId, ProjectId, UserId
from easel.lake.digest import Digest
from easel.lake.manifest import tree
from easel.lake.manifest.node import Entry
from easel.records.lake import Kind
from easel.store.engine import NewEvent, Tx
from easel.store.lake.nodes import SqlNodes
from easel.store.schema.lake import artifacts, file_set_versions, file_sets, files, job_reads, lineage
from easel.store.upsert import chunks


@dataclass(frozen=True, slots=True)
class NewOutput:
    """A set that only this job writes: its name and the paths in it exist nowhere yet."""

    project_id: ProjectId
    user_id: UserId
    job: int
    name: str
    files: Sequence[tuple[str, int, Digest]]
    """(path, size, digest), by path."""


def register(tx: Tx, project_id: ProjectId, creator: UserId, ids: Sequence[JobId]) -> dict[JobId, int]:
    """Enter new jobs; returns the catalogue's number of each."""
    rows = [_artifact(tx, project_id, Kind.JOB, job, creator) for job in ids]
    return dict(zip(ids, _numbers(tx, artifacts, rows), strict=True))


_ADD_READS = insert(job_reads)


def add_reads(tx: Tx, pairs: Sequence[tuple[int, int]]) -> None:
    """(job, file set that it reads)."""
    if pairs:
        tx.execute(_ADD_READS, [{"job": job, "file_set": read} for job, read in pairs])


def add_outputs(tx: Tx, new: Sequence[NewOutput]) -> list[tuple[str, int]]:
    """Version 1 of each set; returns `name:1` and the catalogue's number of each."""
    if not new:
        return []
    flat = [(output, *file) for output in new for file in output.files]
    numbers = iter(
        _numbers(
            tx,
            artifacts,
            [
                _artifact(tx, o.project_id, Kind.FILE, path, o.user_id, size, digest, o.job)
                for o, path, size, digest in flat
            ],
        )
    )
    if flat:
        paths = [{"project_id": o.project_id, "path": path, "latest": 1} for o, path, _, _ in flat]
        tx.execute(insert(files), paths)
    nodes = SqlNodes(tx, lambda: nullcontext(tx))
    roots = [
        tree.build(
            nodes, [Entry(path, 1, next(numbers), size, digest) for path, size, digest in output.files]
        )
        for output in new
    ]
    nodes.flush()
    tx.execute(insert(file_sets), [{"project_id": o.project_id, "name": o.name, "latest": 1} for o in new])
    sets = _numbers(
        tx,
        artifacts,
        [
            _artifact(tx, o.project_id, Kind.FILE_SET, o.name, o.user_id, root.bytes, None, o.job)
            for o, root in zip(new, roots, strict=True)
        ],
    )
    tx.execute(
        insert(file_set_versions),
        [
            {
                "artifact_id": number,
                "root": root.digest,
                "level": root.level,
                "first": root.first,
                "files": root.files,
                "sources": [],
            }
            for number, root in zip(sets, roots, strict=True)
        ],
    )
    reads = _reads(tx, [output.job for output in new])
    edges = [
        {"project_id": o.project_id, "source": read, "target": number, "job": o.job}
        for o, number in zip(new, sets, strict=True)
        for read in reads.get(o.job, ())
    ]
    if edges:
        tx.execute(insert(lineage), edges)
    tx.emit_all(
        [
            NewEvent(
                "fileset.created",
                f"{o.name}:1",
                o.project_id,
                o.user_id,
                {"name": o.name, "version": 1, "files": root.files, "bytes": root.bytes},
            )
            for o, root in zip(new, roots, strict=True)
        ]
    )
    return [(f"{output.name}:1", number) for output, number in zip(new, sets, strict=True)]


def _reads(tx: Tx, ids: Sequence[int]) -> dict[int, list[int]]:
    """The file sets that each job read: its input and its code."""
    found: dict[int, list[int]] = {}
    for some in chunks(ids):
        query = select(job_reads.c.job, job_reads.c.file_set).where(job_reads.c.job.in_(some))
        for job, read in tx.execute(query.order_by(job_reads.c.job, job_reads.c.file_set)):
            found.setdefault(job, []).append(read)
    return found


def _artifact(
    tx: Tx,
    project_id: ProjectId,
    kind: Kind,
    name: str,
    creator: UserId,
    size: int = 0,
    digest: Digest | None = None,
    made_by: int | None = None,
) -> dict[str, Any]:
    return {
        "project_id": project_id,
        "kind": kind.value,
        "name": name,
        "version": 1,
        "creator": creator,
        "created_at": tx.now,
        "size": size,
        "digest": digest,
        "made_by": made_by,
    }


def _numbers(tx: Tx, table: Table, rows: Sequence[dict[str, Any]]) -> list[int]:
    """Insert; the keys that the rows got, in their order."""
    if not rows:
        return []
    return [int(row.id) for row in tx.execute(_adding(table), list(rows))]


@cache
def _adding(table: Table) -> ReturningInsert[Any]:
    """Built once a table: building it costs more than running it for one job."""
    return insert(table).returning(table.c.id, sort_by_parameter_order=True)
