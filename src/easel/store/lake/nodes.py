"""Manifest nodes in the database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime

from sqlalchemy import delete, select

from easel.lake.digest import Digest
from easel.store.engine import Tx
from easel.store.schema.lake import manifest_nodes
from easel.store.upsert import chunks, insert_or

_BATCH = 200
Writing = Callable[[], AbstractContextManager[Tx]]


class SqlNodes:
    """Reads through `tx`; new nodes wait in memory and are written in batches through `writing`.

    With a `writing` of its own, a set of a million files is built beside other people's work: each batch is
    a short transaction, and nodes that no set names are garbage that `easel gc` finds.
    """

    def __init__(self, tx: Tx, writing: Writing) -> None:
        self._tx, self._writing = tx, writing
        self._pending: dict[Digest, bytes] = {}
        # Inner nodes may be read back through a view that began before they were written. They are few.
        self._inner: dict[Digest, bytes] = {}

    def get(self, digests: Sequence[Digest]) -> list[bytes]:
        found: dict[bytes, bytes] = {}
        for made in (self._pending, self._inner):
            found.update((d, made[d]) for d in digests if d in made)
        for some in chunks([d for d in digests if d not in found]):
            query = select(manifest_nodes.c.digest, manifest_nodes.c.data)
            rows = self._tx.execute(query.where(manifest_nodes.c.digest.in_(some)))
            found.update((bytes(digest), bytes(data)) for digest, data in rows)
        return [found[d] for d in digests]

    def add(self, digest: Digest, data: bytes) -> None:
        self._pending[digest] = data
        if data[0] > 0:
            self._inner[digest] = data
        if len(self._pending) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        if not self._pending:
            return
        with self._writing() as tx:
            made = insert_or(tx, manifest_nodes)
            made = made.on_conflict_do_update(
                index_elements=["digest"], set_={"added_at": made.excluded.added_at}
            )
            rows = [{"digest": d, "data": b, "added_at": tx.now} for d, b in self._pending.items()]
            tx.execute(made, rows)
        self._pending = {}


def old_nodes(tx: Tx, before: datetime) -> set[bytes]:
    query = select(manifest_nodes.c.digest).where(manifest_nodes.c.added_at < before)
    return {bytes(row.digest) for row in tx.execute(query)}


def forget_nodes(tx: Tx, digests: Sequence[bytes], before: datetime) -> int:
    return sum(
        tx.execute(
            delete(manifest_nodes).where(
                manifest_nodes.c.digest.in_(some), manifest_nodes.c.added_at < before
            )
        ).rowcount
        for some in chunks(digests)
    )
