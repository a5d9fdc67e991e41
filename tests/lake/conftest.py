"""Buckets of an S3 server for the tests of the lake."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from easel.testing import s3
from easel.testing.s3 import Bucket


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    with s3.serving() as endpoint:
        yield endpoint


@pytest.fixture
def bucket(s3_endpoint: str) -> Bucket:
    return s3.new_bucket(s3_endpoint)
