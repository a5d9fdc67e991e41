"""Queries on file sets: their names, their versions and the roots of their manifests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, and_, bindparam, insert, select, update

from easel.ids import ProjectId
from easel.lake.access import Rights
from easel.lake.digest import Digest
from easel.lake.manifest.node import NodeRef
from easel.records.lake import Artifact, FileSetVersion, Kind
from easel.store.engine import AnyRow, Tx
from easel.store.lake.artifacts import COLUMNS, add_version, allowed, artifact
from easel.store.schema.lake import artifacts, file_set_versions, file_sets
from easel.store.upsert import insert_or

_EXTRA = (
    file_set_versions.c.root,
    file_set_versions.c.level,
    file_set_versions.c.first,
    file_set_versions.c.files,
    file_set_versions.c.sources,
)
AUTOMATIC = ("output", "artifacts")
"""A job's set that nobody named is called `JOB-output`; what an MLflow client logs to one, `JOB-artifacts`."""
_LATEST = and_(
    artifacts.c.project_id == file_sets.c.project_id,
    artifacts.c.kind == Kind.FILE_SET,
    artifacts.c.name == file_sets.c.name,
    artifacts.c.version == file_sets.c.latest,
)


def _version(row: AnyRow) -> tuple[FileSetVersion, NodeRef]:
    found = artifact(row[: len(COLUMNS)])
    root = NodeRef(row.first, Digest(bytes(row.root)), row.level, row.files, found.size)
    return FileSetVersion(found, row.files, tuple(row.sources), bytes(row.root)), root


def _versions() -> Select[*tuple[Any, ...]]:
    return select(*COLUMNS, *_EXTRA).join(
        file_set_versions, file_set_versions.c.artifact_id == artifacts.c.id
    )


_NEWEST = (
    _versions()
    .join(file_sets, _LATEST)
    .where(
        file_sets.c.project_id == bindparam("of_project"),
        file_sets.c.name == bindparam("of_name"),
        file_sets.c.deleted_at.is_(None),
    )
)
_AT = _versions().where(
    artifacts.c.project_id == bindparam("of_project"),
    artifacts.c.kind == Kind.FILE_SET,
    artifacts.c.name == bindparam("of_name"),
    artifacts.c.version == bindparam("at"),
)


def find(
    tx: Tx, project_id: ProjectId, name: str, version: int | None
) -> tuple[FileSetVersion, NodeRef] | None:
    """A version and its manifest; None for the version means the latest, unless the set is deleted."""
    named: dict[str, Any] = {"of_project": project_id, "of_name": name}
    found = tx.execute(_NEWEST, named) if version is None else tx.execute(_AT, {**named, "at": version})
    row = found.one_or_none()
    return _version(row) if row else None


def add(tx: Tx, new: Artifact, root: NodeRef, sources: Sequence[str]) -> FileSetVersion:
    """The next version of a set; `new`'s id, version and size are filled in here."""
    head = insert_or(tx, file_sets).values(project_id=new.project_id, name=new.name, latest=1)
    head = head.on_conflict_do_update(
        index_elements=["project_id", "name"], set_={"latest": file_sets.c.latest + 1, "deleted_at": None}
    )
    version = int(tx.execute(head.returning(file_sets.c.latest)).scalar_one())
    numbered = Artifact(
        0,
        new.project_id,
        Kind.FILE_SET,
        new.name,
        version,
        new.creator,
        new.created_at,
        root.bytes,
        None,
        new.made_by,
        None,
    )
    identity = add_version(tx, numbered)
    tx.execute(
        insert(file_set_versions).values(
            artifact_id=identity,
            root=root.digest,
            level=root.level,
            first=root.first,
            files=root.files,
            sources=list(sources),
        )
    )
    found = find(tx, new.project_id, new.name, version)
    assert found is not None
    return found[0]


def list_sets(
    tx: Tx,
    project_id: ProjectId,
    rights: Rights,
    prefix: str,
    after: str,
    limit: int,
    *,
    automatic: bool = True,
) -> list[FileSetVersion]:
    """The latest version of each set, by name; without `automatic` only sets that somebody named."""
    query = (
        _versions()
        .join(file_sets, _LATEST)
        .where(
            file_sets.c.project_id == project_id,
            file_sets.c.name > after,
            file_sets.c.name >= prefix,
            file_sets.c.deleted_at.is_(None),
            allowed(file_sets.c.name, rights.sets),
        )
        .order_by(file_sets.c.name)
        .limit(limit)
    )
    if prefix:
        query = query.where(file_sets.c.name < prefix + "\U0010ffff")
    if not automatic:
        query = query.where(*(file_sets.c.name.not_like(f"job!_%-{what}", escape="!") for what in AUTOMATIC))
    return [_version(row)[0] for row in tx.execute(query)]


def list_versions(tx: Tx, project_id: ProjectId, name: str) -> list[FileSetVersion]:
    query = _versions().where(
        artifacts.c.project_id == project_id, artifacts.c.kind == Kind.FILE_SET, artifacts.c.name == name
    )
    return [_version(row)[0] for row in tx.execute(query.order_by(artifacts.c.version.desc()))]


def all_versions(
    tx: Tx, project_id: ProjectId, *, deleted: bool = False
) -> list[tuple[FileSetVersion, NodeRef]]:
    """Every version of every set that stands, or also of those that are deleted."""
    query = (
        _versions()
        .join(
            file_sets,
            and_(file_sets.c.project_id == artifacts.c.project_id, file_sets.c.name == artifacts.c.name),
        )
        .where(artifacts.c.project_id == project_id, artifacts.c.kind == Kind.FILE_SET)
    )
    if not deleted:
        query = query.where(file_sets.c.deleted_at.is_(None))
    return [_version(row) for row in tx.execute(query)]


def all_roots(tx: Tx) -> list[NodeRef]:
    """The roots of every manifest of every project: where the collector begins."""
    query = select(*COLUMNS, *_EXTRA).join(
        file_set_versions, file_set_versions.c.artifact_id == artifacts.c.id
    )
    return [_version(row)[1] for row in tx.execute(query)]


def mark_deleted(tx: Tx, project_id: ProjectId, name: str) -> bool:
    changed = tx.execute(
        update(file_sets)
        .where(file_sets.c.project_id == project_id, file_sets.c.name == name)
        .where(file_sets.c.deleted_at.is_(None))
        .values(deleted_at=tx.now)
    )
    return changed.rowcount == 1
