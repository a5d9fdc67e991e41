"""Rows that name what is not there. Foreign keys keep most of them away; these are what they cannot see."""

from __future__ import annotations

from sqlalchemy import Select, exists, not_, select, text

from easel.records.lake import Kind, Location
from easel.store.engine import Store, Tx
from easel.store.schema.identity import projects
from easel.store.schema.lake import artifacts, blobs, file_set_versions, manifest_nodes, objects

_PRESENT = exists().where(
    blobs.c.digest == artifacts.c.digest, blobs.c.object == objects.c.digest, objects.c.state == "present"
)


def orphans(store: Store, limit: int = 20) -> dict[str, list[str]]:
    """What is wrong, each with examples of where: at most `limit` of a kind."""
    found: dict[str, list[str]] = {}
    with store.read() as tx:
        if store.is_sqlite:
            broken = [str(row[0]) for row in tx.execute(text("PRAGMA quick_check")) if row[0] != "ok"]
            missing = [
                f"{row[0]} row {row[1]} names a missing row of {row[2]}"
                for row in tx.execute(text("PRAGMA foreign_key_check"))
            ]
            found |= {"pages of the database are damaged": broken, "rows name rows that are gone": missing}
        found["files without bytes"] = _files_without_bytes(tx, limit)
        found["blobs in objects that are gone"] = [
            bytes(row.digest).hex()
            for row in tx.execute(
                select(blobs.c.digest)
                .where(not_(exists().where(objects.c.digest == blobs.c.object)))
                .limit(limit)
            )
        ]
        found["file sets without their list"] = [
            f"{row.project}: {row.name}:{row.version}"
            for row in tx.execute(
                _named()
                .join(file_set_versions, file_set_versions.c.artifact_id == artifacts.c.id)
                .where(
                    artifacts.c.dropped_at.is_(None),
                    not_(exists().where(manifest_nodes.c.digest == file_set_versions.c.root)),
                )
                .limit(limit)
            )
        ]
    return {kind: where[:limit] for kind, where in found.items() if where}


def _named() -> Select[*tuple[str, str, int]]:
    columns = (projects.c.name.label("project"), artifacts.c.name, artifacts.c.version)
    return select(*columns).join(projects, projects.c.id == artifacts.c.project_id)


def _files_without_bytes(tx: Tx, limit: int) -> list[str]:
    kept = (artifacts.c.kind == Kind.FILE, artifacts.c.dropped_at.is_(None), artifacts.c.digest.is_not(None))
    query = _named().where(*kept, not_(_PRESENT)).limit(limit)
    return [f"{row.project}: {row.name}:{row.version}" for row in tx.execute(query)]


def places_after(tx: Tx, digest: bytes, limit: int = 2000) -> dict[bytes, Location]:
    """Where blobs are that can be read, a page of them in the order of their digests."""
    query = (
        select(blobs.c.digest, blobs.c.object, blobs.c.offset, blobs.c.size)
        .join(objects, blobs.c.object == objects.c.digest)
        .where(objects.c.state == "present", blobs.c.digest > digest)
        .order_by(blobs.c.digest)
        .limit(limit)
    )
    return {bytes(row[0]): Location(bytes(row[1]), row[2], row[3]) for row in tx.execute(query)}


def files_of(tx: Tx, digest: bytes, limit: int = 3) -> list[str]:
    """Some file versions that have these bytes."""
    query = _named().where(artifacts.c.digest == digest, artifacts.c.kind == Kind.FILE).limit(limit)
    return [f"{row.project}: {row.name}:{row.version}" for row in tx.execute(query)]
