"""Rehearse a restore: whether a backup can be read, upgraded, and has the bytes that its rows name."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from easel.flow.backup import DATABASE, choose
from easel.lake.digest import Digest
from easel.lake.place import Place
from easel.store.dump import load
from easel.store.engine import Store
from easel.store.lake.blob_index import all_objects
from easel.store.migrate import migrate


@dataclass(frozen=True, slots=True)
class Rehearsed:
    name: str
    rows: int
    blobs: int
    missing: int


def rehearse_restore(place: Place, name: str | None = None) -> Rehearsed:
    """Restore the rows into a database that is thrown away, and look for every blob that they name."""
    chosen = choose(place, name)
    with tempfile.TemporaryDirectory(prefix="easel-rehearse-") as folder:
        copy = Path(folder) / DATABASE
        place.get_file(f"{chosen}/{DATABASE}" if chosen else DATABASE, copy)
        store = Store(f"sqlite:///{folder}/easel.sqlite")
        try:
            with gzip.open(copy, "rb") as lines:
                rows = load(store, iter(lines))
            migrate(store, backup=lambda _revision: None)
            with store.read() as tx:
                named = set(all_objects(tx))
        finally:
            store.close()
    there = set(_digests(place))
    return Rehearsed(chosen or "the only one", rows, len(named), len(named - there))


def _digests(place: Place) -> Iterator[Digest]:
    return (each.digest for each in place.blobs().objects())
