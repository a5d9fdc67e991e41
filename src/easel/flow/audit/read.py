"""Entries of the audit: in pages, or all of them in order."""

from __future__ import annotations

from collections.abc import Iterator

from easel.declare.page import PageRequest
from easel.ids import ProjectId
from easel.records.audit import ChainedEntry
from easel.store import audit
from easel.store.engine import Store, Tx
from easel.store.paging import Page


def list_entries(tx: Tx, page: PageRequest, project_id: ProjectId | None) -> Page[ChainedEntry]:
    """Returns entries of a project, or without one of the whole platform."""
    return audit.list_entries(tx, page, project_id)


def entries_after(store: Store, seq: int) -> Iterator[list[ChainedEntry]]:
    """Yields all entries after number `seq` in order, some at a time, each from a transaction of its own."""
    while True:
        with store.read() as tx:
            found = audit.entries_after(tx, seq)
        if not found:
            return
        seq = found[-1].seq
        yield found
