"""Tags that jobs give to themselves and to what they make, by printing a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from easel.ids import ProjectId
from easel.records.identity import Caller
from easel.records.lake import Kind
from easel.store.engine import Tx
from easel.store.lake import file_sets
from easel.store.lake.grants import rights_of
from easel.store.lake.tags import NewTag
from easel.store.stored_job import StoredJob

Line = tuple[str, str, str | float]
"""(`job`, `fileset` or the name of a set; key; value)."""


def own_output(row: StoredJob, of: str) -> bool:
    """Whether a line means the set that the job will make."""
    return of == "fileset" or of == row.spec["output_set"] or of == f"{row.id}-output"


def tags_of(
    tx: Tx, caller: Caller, row: StoredJob, lines: Sequence[Line], output: int | None
) -> list[NewTag]:
    """The tags that can be put now. Another set is tagged in its newest version, if the owner may write it."""
    project_id = ProjectId(row.project_id)
    found: list[NewTag] = []
    for of, key, value in lines:
        if of == "job":
            found.append(NewTag(project_id, row.artifact_id, Kind.JOB, key, value))
        elif own_output(row, of):
            if output is not None:
                found.append(NewTag(project_id, output, Kind.FILE_SET, key, value))
        elif rights_of(tx, caller).writes_set(of):
            newest = file_sets.find(tx, project_id, of, None)
            if newest is not None:
                found.append(NewTag(project_id, newest[0].artifact.id, Kind.FILE_SET, key, value))
    return found


def waiting(row: StoredJob, lines: Sequence[Line]) -> list[Any]:
    """Lines about an output that is not there yet, as they are kept with the job."""
    return [[of, key, value] for of, key, value in lines if own_output(row, of)]
