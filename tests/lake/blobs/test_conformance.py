from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from easel.errors import InvalidInput, TryLater
from easel.lake.blobs.local import LocalBlobs
from easel.lake.blobs.store import BlobStore, Incoming
from easel.lake.digest import digest_of
from easel.testing.blobs import FIVE, BlobStoreSuite
from easel.testing.s3 import Bucket


class TestLocalBlobs(BlobStoreSuite):
    @pytest.fixture
    def blobs(self, tmp_path: Path) -> BlobStore:
        return LocalBlobs(tmp_path / "blobs", part=FIVE)


def test_nothing_is_checked_while_somebody_writes_and_nobody_writes_after(tmp_path: Path) -> None:
    """A sender who keeps one part open, has the right bytes checked, and then sends the rest of the wrong ones."""
    blobs = LocalBlobs(tmp_path / "blobs")
    incoming = Incoming(digest_of(b"good"), 4)
    stage = blobs.begin("a", 4)

    def evil() -> Iterator[bytes]:
        yield b"ev"
        blobs.put_part(stage, 1, [b"good"])
        with pytest.raises(TryLater, match="still arriving"):
            blobs.check(stage, incoming)
        yield b"il"

    blobs.put_part(stage, 1, evil())
    with pytest.raises(InvalidInput, match="the bytes hash to"):
        blobs.check(stage, incoming)
    assert blobs.find(incoming.digest) is None


class TestS3Blobs(BlobStoreSuite):
    @pytest.fixture
    def blobs(self, bucket: Bucket) -> BlobStore:
        return bucket.blobs()
