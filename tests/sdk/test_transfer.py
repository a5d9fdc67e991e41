"""A file that changes while it is sent is refused in words, small or large."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from easel.errors import InvalidInput
from easel.lake.digest import digest_file
from easel.lake.folder import LocalFile
from easel.sdk import transfer
from easel.sdk.transfer import Sender, no_progress


def test_a_small_file_that_grew_since_it_was_listed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n")
    listed = LocalFile("/rows.csv", path, path.stat().st_size)
    assert transfer._content(listed) == b"a,b\n1,2\n"
    path.write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(InvalidInput, match=r"rows\.csv changed while it was uploaded: try again"):
        transfer._content(listed)


class Refusing(Sender):
    """A sender whose server finds that the bytes are not what was announced."""

    def __init__(self) -> None:
        self._progress = no_progress

    def _announce(self, path: str, new: Any) -> tuple[Sequence[Any], None]:
        return [], None

    def _finish(self, path: str, digest: str) -> None:
        raise InvalidInput("the bytes have another hash")


def test_a_large_file_that_changed_is_named_and_another_error_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "big"
    path.write_bytes(b"before")
    listed, digest = LocalFile("/big", path, 6), digest_file(path)
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(InvalidInput, match="another hash"):
            Refusing()._large("/", digest, listed, pool)
        path.write_bytes(b"after!")
        with pytest.raises(InvalidInput, match="big changed while it was uploaded"):
            Refusing()._large("/", digest, listed, pool)
