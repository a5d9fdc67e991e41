"""Queries on the catalogue: file versions, folders, moves, delete marks, jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    case,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    true,
    update,
)

from easel.ids import ProjectId, UserId
from easel.lake.access import Rights, Rule
from easel.lake.digest import Digest
from easel.lake.manifest.node import Entry
from easel.lake.paths import above
from easel.records.lake import Artifact, Folder, Kind
from easel.store.engine import Tx
from easel.store.schema.identity import users
from easel.store.schema.lake import artifacts, files
from easel.store.upsert import chunks, insert_or

COLUMNS = tuple(artifacts.c)
_LATEST = and_(
    artifacts.c.project_id == files.c.project_id,
    artifacts.c.kind == Kind.FILE,
    artifacts.c.name == files.c.path,
    artifacts.c.version == files.c.latest,
)
_ENTRY = (artifacts.c.name, artifacts.c.version, artifacts.c.id, artifacts.c.size, artifacts.c.digest)


def artifact(row: Sequence[Any]) -> Artifact:
    identity, project_id, kind, *rest = row
    return Artifact(identity, ProjectId(project_id), Kind(kind), *rest)


def creators_named(tx: Tx, project_id: ProjectId, name: str) -> list[UserId]:
    """Who made something in this project under this name, whether or not they are still members."""
    made = exists().where(artifacts.c.project_id == project_id, artifacts.c.creator == users.c.id)
    return [UserId(row.id) for row in tx.execute(select(users.c.id).where(users.c.name == name, made))]


def within(column: ColumnElement[Any], folder: str) -> ColumnElement[bool]:
    """Names below a folder, as a range that an index answers."""
    return true() if folder == "/" else and_(column >= folder, column < above(folder))


def allowed(column: ColumnElement[Any], rules: tuple[Rule, ...]) -> ColumnElement[bool]:
    """The names that may be read: the first rule that covers one decides, as in `Rights`."""
    if not rules:
        return true()
    whens = [(_covered(column, rule), literal(1 if rule.may_read else 0)) for rule in rules]
    return case(*whens, else_=literal(1)) == 1


def readable(rights: Rights) -> ColumnElement[bool]:
    """The artifacts that may be seen. Jobs are seen by every member."""
    if not rights.paths and not rights.sets:
        return true()
    return or_(
        artifacts.c.kind == Kind.JOB,
        and_(artifacts.c.kind == Kind.FILE, allowed(artifacts.c.name, rights.paths)),
        and_(artifacts.c.kind == Kind.FILE_SET, allowed(artifacts.c.name, rights.sets)),
    )


def _covered(column: ColumnElement[Any], rule: Rule) -> ColumnElement[bool]:
    if rule.exact:
        return column == rule.stem
    return true() if rule.stem in {"", "/"} else and_(column >= rule.stem, column < above(rule.stem))


def find_version(tx: Tx, project_id: ProjectId, kind: Kind, name: str, version: int) -> Artifact | None:
    row = tx.execute(
        select(*COLUMNS).where(
            artifacts.c.project_id == project_id,
            artifacts.c.kind == kind,
            artifacts.c.name == name,
            artifacts.c.version == version,
        )
    ).one_or_none()
    return artifact(row) if row else None


def find_latest_file(tx: Tx, project_id: ProjectId, path: str) -> Artifact | None:
    """Returns the latest version of a file; None where there is no file, or it is deleted."""
    row = tx.execute(
        select(*COLUMNS)
        .join(files, _LATEST)
        .where(files.c.project_id == project_id, files.c.path == path, files.c.deleted_at.is_(None))
    ).one_or_none()
    return artifact(row) if row else None


def by_id(tx: Tx, project_id: ProjectId, ids: Sequence[int]) -> dict[int, Artifact]:
    found: dict[int, Artifact] = {}
    for some in chunks(ids):
        query = select(*COLUMNS).where(artifacts.c.project_id == project_id, artifacts.c.id.in_(some))
        found.update((row.id, artifact(row)) for row in tx.execute(query))
    return found


def made_by(tx: Tx, project_id: ProjectId, kind: Kind, job: int) -> list[Artifact]:
    query = select(*COLUMNS).where(
        artifacts.c.project_id == project_id, artifacts.c.kind == kind, artifacts.c.made_by == job
    )
    return [artifact(row) for row in tx.execute(query.order_by(artifacts.c.id))]


def versions_of(tx: Tx, project_id: ProjectId, kind: Kind, name: str) -> list[Artifact]:
    """All versions, newest first."""
    query = select(*COLUMNS).where(
        artifacts.c.project_id == project_id, artifacts.c.kind == kind, artifacts.c.name == name
    )
    return [artifact(row) for row in tx.execute(query.order_by(artifacts.c.version.desc()))]


def list_folder(
    tx: Tx, project_id: ProjectId, folder: str, rights: Rights, after: str, limit: int
) -> list[Artifact | Folder]:
    """What stands directly in a folder, from after `after` on.

    A subfolder is one item however many files it has: the scan jumps from its first file to its end.
    """
    found: list[Artifact | Folder] = []
    position = max(after, folder)
    while len(found) < limit:
        batch = tx.execute(
            _current(project_id, rights)
            .where(files.c.path > position, within(files.c.path, folder))
            .order_by(files.c.path)
            .limit(limit)
        ).all()
        for row in batch:
            if row.name <= position:
                continue  # inside a subfolder that was just jumped over
            name = row.name[len(folder) :]
            if "/" in name:
                inner = folder + name.partition("/")[0] + "/"
                found.append(Folder(inner))
            else:
                found.append(artifact(row))
            position = end_of(found[-1])
            if len(found) == limit:
                break
        if len(batch) < limit:
            break
    return found


def end_of(item: Artifact | Folder) -> str:
    """The last path that an item of a listing stands for. No name contains U+10FFFF: a folder ends there."""
    return item.path + "\U0010ffff" if isinstance(item, Folder) else item.name


def list_tree(
    tx: Tx, project_id: ProjectId, folder: str, rights: Rights, after: str, limit: int
) -> list[Artifact]:
    """Every current file below a folder, by path."""
    query = _current(project_id, rights).where(files.c.path > after, within(files.c.path, folder))
    return [artifact(row) for row in tx.execute(query.order_by(files.c.path).limit(limit))]


def _current(project_id: ProjectId, rights: Rights) -> Select[*tuple[Any, ...]]:
    return (
        select(*COLUMNS)
        .join(files, _LATEST)
        .where(
            files.c.project_id == project_id,
            files.c.deleted_at.is_(None),
            allowed(files.c.path, rights.paths),
        )
    )


def stream_entries(tx: Tx, project_id: ProjectId, folder: str, rights: Rights) -> Iterator[Entry]:
    """Current files below a folder as entries of a manifest, by path, a few thousand rows at a time."""
    query = (
        select(*_ENTRY)
        .join(files, _LATEST)
        .where(
            files.c.project_id == project_id,
            files.c.deleted_at.is_(None),
            artifacts.c.dropped_at.is_(None),
            within(files.c.path, folder),
            allowed(files.c.path, rights.paths),
        )
        .order_by(files.c.path)
    )
    return map(Entry._make, tx.execute(query.execution_options(yield_per=5000)))


def entry(found: Artifact) -> Entry:
    assert found.digest is not None, "files have bytes"
    return Entry(found.name, found.version, found.id, found.size, Digest(found.digest))


def next_version(tx: Tx, project_id: ProjectId, path: str) -> int:
    """Take the next number of a path. Whoever asks next waits until this transaction has ended."""
    head = insert_or(tx, files).values(project_id=project_id, path=path, latest=1)
    head = head.on_conflict_do_update(
        index_elements=["project_id", "path"], set_={"latest": files.c.latest + 1, "deleted_at": None}
    )
    return int(tx.execute(head.returning(files.c.latest)).scalar_one())


def add_version(tx: Tx, new: Artifact) -> int:
    """Insert an artifact (its `id` is ignored); returns the id it got."""
    values = {c.name: getattr(new, c.name) for c in artifacts.c if c.name != "id"}
    return int(tx.execute(insert(artifacts).values(**values).returning(artifacts.c.id)).scalar_one())


def add_job(tx: Tx, project_id: ProjectId, job_id: str, creator: UserId) -> int:
    """Register a job, so that it can be tagged, found and traced; repeating returns the same id."""
    made = (
        insert_or(tx, artifacts)
        .values(
            project_id=project_id,
            kind=Kind.JOB,
            name=job_id,
            version=1,
            creator=creator,
            created_at=tx.now,
            size=0,
        )
        .on_conflict_do_nothing()
    )
    tx.execute(made)
    found = find_version(tx, project_id, Kind.JOB, job_id, 1)
    assert found is not None
    return found.id


def mark_deleted(tx: Tx, project_id: ProjectId, paths: Sequence[str]) -> int:
    """Hide paths from listings and from `latest`; their versions stay."""
    return sum(
        tx.execute(
            update(files)
            .where(files.c.project_id == project_id, files.c.path.in_(some), files.c.deleted_at.is_(None))
            .values(deleted_at=tx.now)
        ).rowcount
        for some in chunks(paths)
    )


def a_file_among(tx: Tx, project_id: ProjectId, paths: Sequence[str]) -> str | None:
    """One of `paths` that is a current file."""
    for some in chunks(paths):
        query = select(files.c.path).where(
            files.c.project_id == project_id, files.c.path.in_(some), files.c.deleted_at.is_(None)
        )
        if found := tx.execute(query.limit(1)).scalar_one_or_none():
            return str(found)
    return None


def a_file_below(tx: Tx, project_id: ProjectId, path: str) -> str | None:
    query = select(files.c.path).where(
        files.c.project_id == project_id, within(files.c.path, path + "/"), files.c.deleted_at.is_(None)
    )
    return tx.execute(query.limit(1)).scalar_one_or_none()


def old_files(tx: Tx, project_id: ProjectId, folder: str, before: datetime) -> list[Artifact]:
    """File versions below a folder that still have their bytes and were made before `before`."""
    query = select(*COLUMNS).where(
        artifacts.c.project_id == project_id,
        artifacts.c.kind == Kind.FILE,
        within(artifacts.c.name, folder),
        artifacts.c.created_at < before,
        artifacts.c.dropped_at.is_(None),
    )
    return [artifact(row) for row in tx.execute(query.order_by(artifacts.c.name, artifacts.c.version))]


def delete_dropped(tx: Tx, project_id: ProjectId, paths: Sequence[str]) -> None:
    """Mark those of `paths` deleted whose latest version has no bytes any more."""
    gone = exists().where(_LATEST, artifacts.c.dropped_at.is_not(None))
    for some in chunks(paths):
        here = and_(files.c.project_id == project_id, files.c.path.in_(some), files.c.deleted_at.is_(None))
        tx.execute(update(files).where(here, gone).values(deleted_at=tx.now))


def drop_bytes(tx: Tx, ids: Sequence[int]) -> int:
    """Give up the bytes of file versions or sets; the rows stay, so numbers have no gaps."""
    return sum(
        tx.execute(
            update(artifacts)
            .where(artifacts.c.id.in_(some), artifacts.c.dropped_at.is_(None))
            .values(dropped_at=tx.now)
        ).rowcount
        for some in chunks(ids)
    )


def restore_bytes(tx: Tx, ids: Sequence[int]) -> int:
    return sum(
        tx.execute(update(artifacts).where(artifacts.c.id.in_(some)).values(dropped_at=None)).rowcount
        for some in chunks(ids)
    )


def total(tx: Tx, project_id: ProjectId) -> tuple[int, int]:
    """How many file versions a project has, and how many bytes they name."""
    query = select(func.count(), func.coalesce(func.sum(artifacts.c.size), 0)).where(
        artifacts.c.project_id == project_id, artifacts.c.kind == Kind.FILE, artifacts.c.dropped_at.is_(None)
    )
    count, size = tx.execute(query).one()
    return int(count), int(size)
