"""The files of an app's examples, read from the lake."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from easel.flow.apps.declare import declare_app
from easel.flow.apps.feed_files import files_of
from easel.flow.apps.files import AppFiles
from easel.flow.lake.ingest import ingest_folder
from easel.flow.lake.upload import commit
from easel.lake.digest import Digest
from easel.store import apps
from easel.testing.engine import EngineUnderTest


def test_files_that_lie_in_packs_by_turns_are_read_with_each_pack_once(
    engine: EngineUnderTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana = engine.caller()
    for pack in "ab":
        (tmp_path / pack).mkdir()
        for number in range(20):
            (tmp_path / pack / f"{number}.txt").write_text(f"{pack}{number}" * 20)
        session = ingest_folder(engine.lake, ana, tmp_path / pack, f"/in/{pack}/")
        with engine.store.write() as tx:
            commit(tx, ana, session.id)
    with engine.store.write() as tx:
        declare_app(tx, ana, "flowers", "input: {size: number}\noutput: [no, yes]")
        app = apps.find(tx, ana.project_id, "flowers")
        entries = files_of(tx, ana, "/in/")
    reads: Counter[Digest] = Counter()
    blobs = engine.lake.blobs
    really = blobs.read

    def counted(digest: Digest, *rest: Any) -> Iterator[bytes]:
        reads[digest] += 1
        return really(digest, *rest)

    monkeypatch.setattr(blobs, "read", counted)
    files = AppFiles(engine.lake, ana, app, entries)
    for number in range(20):
        for pack in "ab":
            assert files(f"/in/{pack}/{number}.txt") == f"{pack}{number}".encode() * 20
    assert sorted(reads.values()) == [1, 1]
