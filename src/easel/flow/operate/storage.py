"""Who holds how many bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from easel.ids import ProjectId
from easel.store import identity, storage
from easel.store.engine import Tx


@dataclass(frozen=True, slots=True)
class StorageHolder:
    project: str
    user: str
    files: int
    bytes: int
    log_bytes: int


@dataclass(frozen=True, slots=True)
class StorageReport:
    holders: Sequence[StorageHolder]
    """The largest first."""
    objects: int
    stored_bytes: int
    """In the blob store: equal bytes of many files count once."""


def storage_report(tx: Tx, project_id: ProjectId | None = None) -> StorageReport:
    """Returns what is stored, for one project or for all."""
    found = storage.holdings(tx, project_id)
    people = identity.names_of(tx, list({each.user_id for each in found}))
    projects = {each.project_id: identity.find_project(tx, each.project_id) for each in found}
    holders = []
    for each in found:
        project = projects[each.project_id]
        name = project.name if project is not None else each.project_id
        holders.append(
            StorageHolder(
                name, people.get(each.user_id, each.user_id), each.files, each.bytes, each.log_bytes
            )
        )
    count, size = storage.stored(tx)
    return StorageReport(holders, count, size)
