"""Queries on upload sessions. A commit is a handful of statements, however many files it has."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Select, and_, delete, exists, func, insert, literal, not_, select, update

from easel.ids import ProjectId, UploadId, UserId
from easel.lake.blobs.store import Incoming, PackMember, Stage
from easel.lake.digest import Digest
from easel.records.lake import Kind, Upload, UploadItem, UploadState
from easel.store.digest_in import MOST, digest_in
from easel.store.engine import AnyRow, Tx
from easel.store.schema.lake import artifacts, blobs, files, objects, upload_items, upload_objects, uploads
from easel.store.upsert import chunks, insert_or

_UPLOAD = tuple(uploads.c)
_MEMBER = struct.Struct("<32sQ")


def _upload(row: AnyRow) -> Upload:
    identity, project_id, creator, state, *rest = row
    return Upload(UploadId(identity), ProjectId(project_id), creator, UploadState(state), *rest)


def add_upload(tx: Tx, new: Upload) -> None:
    tx.execute(insert(uploads).values(**{c.name: getattr(new, c.name) for c in uploads.c}))


def find_upload(tx: Tx, project_id: ProjectId, upload_id: str) -> Upload | None:
    query = select(*_UPLOAD).where(uploads.c.project_id == project_id, uploads.c.id == upload_id)
    row = tx.execute(query).one_or_none()
    return _upload(row) if row else None


def count_open(tx: Tx, project_id: ProjectId, user_id: UserId) -> int:
    query = select(func.count()).where(
        uploads.c.project_id == project_id,
        uploads.c.creator == user_id,
        uploads.c.state == UploadState.PENDING,
    )
    return int(tx.execute(query).scalar_one())


def list_uploads(tx: Tx, project_id: ProjectId, state: UploadState, limit: int) -> list[Upload]:
    query = select(*_UPLOAD).where(uploads.c.project_id == project_id, uploads.c.state == state)
    return [_upload(row) for row in tx.execute(query.order_by(uploads.c.created_at.desc()).limit(limit))]


def touch(tx: Tx, upload_id: UploadId) -> None:
    tx.execute(update(uploads).where(uploads.c.id == upload_id).values(touched_at=tx.now))


def put_items(tx: Tx, upload_id: UploadId, items: Sequence[UploadItem], held: set[bytes]) -> None:
    """Add files to a session. A path that it has takes the new bytes: the sender's last word counts."""
    made = insert_or(tx, upload_items)
    made = made.on_conflict_do_update(
        index_elements=["upload_id", "path"],
        set_={"size": made.excluded.size, "digest": made.excluded.digest, "held": made.excluded.held},
    )
    rows = [
        {
            "upload_id": upload_id,
            "path": i.path,
            "size": i.size,
            "digest": i.digest,
            "held": i.digest in held,
        }
        for i in items
    ]
    for some in chunks(rows):
        tx.execute(made, list(some))


def wanted(tx: Tx, upload_id: UploadId, after: bytes, limit: int) -> list[tuple[Digest, int]]:
    """Bytes that still have to be sent, by digest, each once."""
    query = (
        select(upload_items.c.digest, upload_items.c.size)
        .where(
            upload_items.c.upload_id == upload_id,
            upload_items.c.held.is_(False),
            upload_items.c.digest > after,
        )
        .distinct()
        .order_by(upload_items.c.digest)
        .limit(limit)
    )
    return [(Digest(bytes(digest)), size) for digest, size in tx.execute(query)]


def asks_for(tx: Tx, upload_id: UploadId, digests: Sequence[bytes]) -> dict[bytes, int]:
    """The sizes of those digests that some file of the session names."""
    found: dict[bytes, int] = {}
    for some in chunks(digests, MOST):
        query = select(upload_items.c.digest, upload_items.c.size).where(
            upload_items.c.upload_id == upload_id, digest_in(tx, upload_items.c.digest, some)
        )
        found.update((bytes(digest), size) for digest, size in tx.execute(query))
    return found


def held_in(tx: Tx, upload_id: UploadId, digests: Sequence[bytes]) -> set[bytes]:
    """Returns the blobs whose bytes this session has sent already, before it was interrupted."""
    found: set[bytes] = set()
    for some in chunks(digests, MOST):
        query = select(upload_items.c.digest).where(
            upload_items.c.upload_id == upload_id,
            upload_items.c.held.is_(True),
            digest_in(tx, upload_items.c.digest, some),
        )
        found.update(bytes(row.digest) for row in tx.execute(query))
    return found


def mark_held(tx: Tx, upload_id: UploadId, digests: Sequence[bytes]) -> None:
    for some in chunks(digests, MOST):
        tx.execute(
            update(upload_items)
            .where(upload_items.c.upload_id == upload_id, digest_in(tx, upload_items.c.digest, some))
            .values(held=True)
        )


def add_object(tx: Tx, upload_id: UploadId, stage: Stage, incoming: Incoming) -> bool:
    """Whether it is new; a session announces an object once."""
    members = b"".join(_MEMBER.pack(m.digest, m.size) for m in incoming.members)
    made = insert_or(tx, upload_objects).values(
        stage_id=stage.id,
        upload_id=upload_id,
        digest=incoming.digest,
        size=incoming.size,
        part_size=stage.part_size,
        handle=stage.handle,
        members=members,
        stored=False,
    )
    answer = tx.execute(made.on_conflict_do_nothing().returning(upload_objects.c.stage_id))
    return answer.scalar_one_or_none() is not None


def find_object(tx: Tx, upload_id: UploadId, digest: bytes) -> tuple[Stage, Incoming, bool] | None:
    """The stage, what is to arrive in it, and whether it has been stored."""
    query = select(upload_objects).where(
        upload_objects.c.upload_id == upload_id, upload_objects.c.digest == digest
    )
    row = tx.execute(query).one_or_none()
    return _object(row) if row else None


def find_stage(tx: Tx, stage_id: str) -> Stage | None:
    """The stage of a pending session."""
    query = (
        select(upload_objects)
        .join(uploads, uploads.c.id == upload_objects.c.upload_id)
        .where(upload_objects.c.stage_id == stage_id, uploads.c.state == UploadState.PENDING)
    )
    row = tx.execute(query).one_or_none()
    return _object(row)[0] if row else None


def objects_of(tx: Tx, upload_id: UploadId) -> list[tuple[Stage, Incoming, bool]]:
    query = select(upload_objects).where(upload_objects.c.upload_id == upload_id)
    return [_object(row) for row in tx.execute(query)]


def _object(row: AnyRow) -> tuple[Stage, Incoming, bool]:
    members, offset = [], 0
    for digest, size in _MEMBER.iter_unpack(row.members):
        members.append(PackMember(Digest(digest), offset, size))
        offset += size
    stage = Stage(row.stage_id, row.size, row.part_size, row.handle)
    return stage, Incoming(Digest(bytes(row.digest)), row.size, tuple(members)), row.stored


def mark_stored(tx: Tx, stage_id: str) -> None:
    tx.execute(update(upload_objects).where(upload_objects.c.stage_id == stage_id).values(stored=True))


def forget_object(tx: Tx, stage_id: str) -> None:
    tx.execute(delete(upload_objects).where(upload_objects.c.stage_id == stage_id))


def known_stages(tx: Tx, stage_ids: Sequence[str]) -> set[str]:
    """Returns the stages that a pending session still uses."""
    found: set[str] = set()
    for some in chunks(stage_ids):
        query = (
            select(upload_objects.c.stage_id)
            .join(uploads, uploads.c.id == upload_objects.c.upload_id)
            .where(upload_objects.c.stage_id.in_(some), uploads.c.state == UploadState.PENDING)
        )
        found.update(row.stage_id for row in tx.execute(query))
    return found


def end(tx: Tx, upload_id: UploadId, state: UploadState) -> bool:
    """Whether this call is the one that ended the session."""
    changed = tx.execute(
        update(uploads)
        .where(uploads.c.id == upload_id, uploads.c.state == UploadState.PENDING)
        .values(state=state, ended_at=tx.now)
    )
    return changed.rowcount == 1


def missing(tx: Tx, upload_id: UploadId, limit: int = 5) -> list[str]:
    """Paths whose bytes were not sent, or are no longer stored."""
    stored = exists().where(
        blobs.c.digest == upload_items.c.digest,
        blobs.c.object == objects.c.digest,
        objects.c.state == "present",
    )
    query = select(upload_items.c.path).where(
        upload_items.c.upload_id == upload_id, not_(and_(upload_items.c.held, stored))
    )
    return list(tx.execute(query.limit(limit)).scalars())


def paths(tx: Tx, upload_id: UploadId) -> list[str]:
    query = select(upload_items.c.path).where(upload_items.c.upload_id == upload_id)
    return list(tx.execute(query.order_by(upload_items.c.path)).scalars())


def a_folder_among(tx: Tx, upload_id: UploadId, project_id: ProjectId) -> str | None:
    """A path of the session that is a folder in the lake."""
    below = exists().where(
        files.c.project_id == project_id,
        files.c.deleted_at.is_(None),
        files.c.path > upload_items.c.path + "/",
        files.c.path < upload_items.c.path + "0",
    )
    query = select(upload_items.c.path).where(upload_items.c.upload_id == upload_id, below)
    return tx.execute(query.limit(1)).scalar_one_or_none()


def number(tx: Tx, upload: Upload) -> int:
    """Give every file of the session its next version, and enter it into the catalogue; returns how many.

    A file whose newest version holds these very bytes keeps that version, unless a job made the new one.
    """
    items = upload_items.c
    if upload.made_by is None:
        _keep_unchanged(tx, upload)
    fresh = and_(items.upload_id == upload.id, items.version.is_(None))
    source = select(literal(upload.project_id), items.path, literal(1)).where(fresh).order_by(items.path)
    heads = insert_or(tx, files).from_select(["project_id", "path", "latest"], source)
    tx.execute(
        heads.on_conflict_do_update(
            index_elements=["project_id", "path"],
            set_={"latest": files.c.latest + 1, "deleted_at": None},
        )
    )
    made: dict[str, Any] = {
        "project_id": literal(upload.project_id),
        "kind": literal(Kind.FILE.value),
        "name": items.path,
        "version": files.c.latest,
        "creator": literal(upload.creator),
        "created_at": literal(tx.now, artifacts.c.created_at.type),
        "size": items.size,
        "digest": items.digest,
        "made_by": literal(upload.made_by, artifacts.c.made_by.type),
    }
    here = and_(files.c.project_id == upload.project_id, files.c.path == items.path)
    rows = select(*made.values()).join(files, here).where(fresh).order_by(items.path)
    count = tx.execute(insert(artifacts).from_select(list(made), rows)).rowcount
    head = select(files.c.latest).where(here).scalar_subquery()
    tx.execute(update(upload_items).where(fresh).values(version=head))
    return count


def _keep_unchanged(tx: Tx, upload: Upload) -> None:
    """Give files whose newest version has the same bytes that version's number."""
    items = upload_items.c
    newest = (
        select(artifacts.c.version)
        .join(files, and_(files.c.project_id == artifacts.c.project_id, files.c.path == artifacts.c.name))
        .where(
            artifacts.c.project_id == upload.project_id,
            artifacts.c.kind == Kind.FILE,
            artifacts.c.name == items.path,
            artifacts.c.version == files.c.latest,
            artifacts.c.digest == items.digest,
            artifacts.c.dropped_at.is_(None),
            files.c.deleted_at.is_(None),
        )
    )
    unchanged = update(upload_items).where(items.upload_id == upload.id)
    tx.execute(unchanged.values(version=newest.scalar_subquery()))


class CommittedFile(NamedTuple):
    """A version that a committed session made; `id` is its number in the catalogue."""

    path: str
    version: int
    id: int
    size: int
    digest: bytes


def committed(tx: Tx, upload_id: UploadId) -> Iterator[CommittedFile]:
    """Returns what a committed session added, by path, as it is read."""
    found = tx.execute(_committed(upload_id).execution_options(yield_per=5000))
    return (CommittedFile._make(row) for row in found)


def _committed(upload_id: UploadId) -> Select[*tuple[Any, ...]]:
    items = upload_items.c
    same = and_(
        artifacts.c.project_id == uploads.c.project_id,
        artifacts.c.kind == Kind.FILE,
        artifacts.c.name == items.path,
        artifacts.c.version == items.version,
    )
    return (
        select(items.path, items.version, artifacts.c.id, items.size, items.digest)
        .join(uploads, uploads.c.id == items.upload_id)
        .join(artifacts, same)
        .where(items.upload_id == upload_id)
        .order_by(items.path)
    )


def committed_page(tx: Tx, upload_id: UploadId, after: str, limit: int) -> list[CommittedFile]:
    """Returns a page of what a committed session added, by path from `after` on."""
    query = _committed(upload_id).where(upload_items.c.path > after)
    return [CommittedFile._make(row) for row in tx.execute(query.limit(limit))]


def abandoned(tx: Tx, before: datetime, limit: int = 200) -> list[Upload]:
    query = select(*_UPLOAD).where(uploads.c.state == UploadState.PENDING, uploads.c.touched_at < before)
    return [_upload(row) for row in tx.execute(query.limit(limit))]


def progress(tx: Tx, upload_id: UploadId) -> tuple[int, int, int]:
    """Files, bytes, and bytes that need not be sent any more."""
    items = upload_items.c
    held = func.coalesce(func.sum(items.size).filter(items.held), 0)
    query = select(func.count(), func.coalesce(func.sum(items.size), 0), held).where(
        items.upload_id == upload_id
    )
    files_, total, done = tx.execute(query).one()
    return int(files_), int(total), int(done)
