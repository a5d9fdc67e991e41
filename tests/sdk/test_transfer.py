"""A file that changes while it is sent is refused in words; a download that broke off is continued."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from easel.errors import InvalidInput, TryLater
from easel.lake.digest import Corrupt, digest_file, digest_of
from easel.lake.folder import LocalFile
from easel.sdk import transfer
from easel.sdk.transfer import Receiver, Sender, no_progress
from easel.wire import lake as wire


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


class BreakingDirect:
    """Serves a blob, breaking off after `most` bytes; notes from where it was asked."""

    def __init__(self, content: bytes, most: int) -> None:
        self.content, self.most, self.asked = content, most, list[int]()

    def get(self, url: str, start: int, length: int, arrived: int = 0) -> Iterator[bytes]:
        self.asked.append(arrived)
        yield self.content[arrived : arrived + self.most]
        if arrived + self.most < length:
            raise TryLater("the bytes stop coming")


def fetched(content: bytes) -> wire.Fetched:
    digest = digest_of(content).hex()
    item = wire.FileItem.model_construct(path="/big.bin", hash=digest)
    blob = wire.ObjectRange(hash=digest, offset=0, size=len(content))
    span = wire.Range(url="/b", start=0, length=len(content), blobs=[blob])
    return wire.Fetched.model_construct(files=[item], ranges=[span])


def test_a_download_that_broke_off_goes_on_where_it_ended(tmp_path: Path) -> None:
    direct: Any = BreakingDirect(b"abcdefghij", most=6)
    receiver = Receiver(direct, no_progress, threads=1)
    with pytest.raises(TryLater):
        receiver.receive(fetched(direct.content), lambda path: tmp_path / path[1:])
    assert not (tmp_path / "big.bin").exists()
    receiver.receive(fetched(direct.content), lambda path: tmp_path / path[1:])
    receiver.receive(
        fetched(direct.content), lambda path: tmp_path / path[1:]
    )  # it is here: nothing is asked
    assert (tmp_path / "big.bin").read_bytes() == direct.content
    assert direct.asked == [0, 6]
    assert [path.name for path in tmp_path.iterdir()] == ["big.bin"]


def test_what_an_earlier_try_left_is_thrown_away_when_it_was_something_else(tmp_path: Path) -> None:
    direct: Any = BreakingDirect(b"abcdefghij", most=99)
    left = tmp_path / f".{digest_of(direct.content).hex()[:32]}.partial"
    left.write_bytes(b"XXXX")
    receiver = Receiver(direct, no_progress, threads=1)
    with pytest.raises(Corrupt):
        receiver.receive(fetched(direct.content), lambda path: tmp_path / path[1:])
    receiver.receive(fetched(direct.content), lambda path: tmp_path / path[1:])
    assert (tmp_path / "big.bin").read_bytes() == direct.content
