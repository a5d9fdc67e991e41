"""An S3 server for tests: moto's, in a thread, with as many buckets as are asked for."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import boto3
from moto.server import ThreadedMotoServer

from easel.lake.blobs.address import ACCESS_KEY, SECRET_KEY, bucket_address
from easel.lake.blobs.s3 import S3Blobs
from easel.testing.blobs import FIVE

KEY = "test"
CREDENTIALS = {ACCESS_KEY: KEY, SECRET_KEY: KEY}
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Bucket:
    """An empty bucket, and what opens it."""

    endpoint: str
    name: str

    @property
    def url(self) -> str:
        return f"s3://{self.name}/lake"

    def blobs(self, endpoint: str | None = None) -> S3Blobs:
        """Cuts parts at 5 MiB, the smallest that S3 takes."""
        at = endpoint or self.endpoint
        return S3Blobs(self.name, prefix="lake/", endpoint=at, access_key=KEY, secret_key=KEY, part=FIVE)

    @property
    def address(self) -> str:
        return bucket_address(self.url, self.endpoint)


class S3Server:
    """One that can be stopped and started again at its port; what it holds stays in this process meanwhile."""

    def __init__(self) -> None:
        self._port = 0
        self._server: ThreadedMotoServer | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=self._port)
        self._server.start()
        _, self._port = self._server.get_host_and_port()

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None


@contextmanager
def serving() -> Iterator[str]:
    """The endpoint of a server that lives as long as the block."""
    server = S3Server()
    server.start()
    try:
        yield server.endpoint
    finally:
        server.stop()


def new_bucket(endpoint: str) -> Bucket:
    name = f"bucket{next(_numbers)}"
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=KEY,
        aws_secret_access_key=KEY,
    )
    client.create_bucket(Bucket=name)
    return Bucket(endpoint, name)
