from __future__ import annotations

from pathlib import Path

import pytest

from easel.lake.blobs.local import LocalBlobs
from easel.lake.blobs.store import BlobStore
from easel.testing.blobs import FIVE, BlobStoreSuite
from easel.testing.s3 import Bucket


class TestLocalBlobs(BlobStoreSuite):
    @pytest.fixture
    def blobs(self, tmp_path: Path) -> BlobStore:
        return LocalBlobs(tmp_path / "blobs", part=FIVE)


class TestS3Blobs(BlobStoreSuite):
    @pytest.fixture
    def blobs(self, bucket: Bucket) -> BlobStore:
        return bucket.blobs()
