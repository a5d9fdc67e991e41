"""A project as one tar archive: its rows, its file sets and its bytes, streamed."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterable, Iterator
from tempfile import SpooledTemporaryFile
from typing import IO

from easel.flow.lake.checkout import read_blob
from easel.flow.lake.file_set import own_nodes
from easel.flow.lake.upload import Lake
from easel.lake.manifest import tree
from easel.records.identity import Caller
from easel.store import identity, people, project_rows
from easel.store.lake import blob_index
from easel.store.lake.file_sets import all_versions
from easel.version import __version__

_CHUNK = 1 << 20
_BLOCK = 512


def export(lake: Lake, caller: Caller) -> Iterator[bytes]:
    """The archive piece by piece; when the last one was taken, the project counts as exported.

    `project.jsonl` has a line a row, `file_sets.jsonl` a line a version with its files, `blobs/<digest>` the bytes.
    """
    project_id = caller.project_id
    with lake.store.snapshot() as tx, SpooledTemporaryFile(max_size=16 * _CHUNK) as kept:
        header = {
            "easel": "project",
            "version": __version__,
            "project": caller.project and caller.project.name,
        }
        lines: Iterable[dict[str, object]] = (
            {"table": table, "row": row} for table, row in project_rows.rows(tx, project_id)
        )
        yield from _member("export.json", _spooled(kept, [header]))
        yield from _member("project.jsonl", _spooled(kept, lines))
        nodes = own_nodes(tx)
        sets: Iterable[dict[str, object]] = (
            {
                "name": str(version),
                "files": [[each.path, each.digest.hex(), each.size] for each in tree.entries(nodes, root)],
            }
            for version, root in all_versions(tx, project_id, deleted=True)
        )
        yield from _member("file_sets.jsonl", _spooled(kept, sets))
        digests = project_rows.file_digests(tx, project_id)
        places = blob_index.locate(tx, digests)
        for digest in digests:
            if digest in places:
                place = places[digest]
                yield from _header(f"blobs/{digest.hex()}", place.size)
                yield from read_blob(lake.blobs, place)
                yield _padding(place.size)
    yield b"\0" * 2 * _BLOCK
    with lake.store.write() as tx:
        found = identity.find_project(tx, project_id)
        if found is not None and found.archived_at is not None:
            people.change_project(tx, project_id, exported_at=tx.now)
        tx.emit("project.exported", project_id, project_id=project_id, actor=caller.user.id)


def _spooled(kept: IO[bytes], lines: Iterable[object]) -> IO[bytes]:
    """The lines in a file: an archive tells a member's length before its bytes."""
    kept.seek(0)
    kept.truncate()
    for line in lines:
        kept.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
    return kept


def _member(name: str, file: IO[bytes]) -> Iterator[bytes]:
    size = file.tell()
    yield from _header(name, size)
    file.seek(0)
    while chunk := file.read(_CHUNK):
        yield chunk
    yield _padding(size)


def _header(name: str, size: int) -> Iterator[bytes]:
    info = tarfile.TarInfo(name)
    info.size = size
    yield info.tobuf(tarfile.PAX_FORMAT)


def _padding(size: int) -> bytes:
    return b"\0" * (-size % _BLOCK)
