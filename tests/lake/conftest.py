"""An S3 server for the tests of the lake: moto's, in a thread, with a bucket of its own for each test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import boto3
import pytest
from moto.server import ThreadedMotoServer

from easel.lake.blobs.s3 import S3Blobs
from easel.testing.blobs import FIVE

_numbers = itertools.count()


@dataclass(frozen=True)
class Bucket:
    endpoint: str
    name: str

    def blobs(self, endpoint: str | None = None) -> S3Blobs:
        return S3Blobs(
            self.name,
            prefix="lake/",
            endpoint=endpoint or self.endpoint,
            access_key="test",
            secret_key="test",
            part=FIVE,
        )


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(s3_endpoint: str) -> Bucket:
    name = f"bucket{next(_numbers)}"
    client = boto3.client(
        "s3",
        endpoint_url=s3_endpoint,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    client.create_bucket(Bucket=name)
    return Bucket(s3_endpoint, name)
