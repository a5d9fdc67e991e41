"""The lake of a running server: its blob store from the settings, and the key that signs addresses."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from urllib.parse import urlsplit

from easel.errors import Misconfigured
from easel.flow.lake.upload import Lake
from easel.lake.blobs.local import LocalBlobs
from easel.lake.blobs.signing import Signer
from easel.lake.blobs.store import BlobStore, Stage
from easel.lake.digest import Digest
from easel.serve.settings import Settings
from easel.store.engine import Store

VALID_SECONDS = 3600
BLOBS = "/blobs"


def open_blobs(settings: Settings) -> BlobStore:
    """`blobs_url` is empty for a folder under `home`, or s3://bucket/prefix."""
    if not settings.blobs_url:
        return LocalBlobs(settings.folder / "blobs")
    url = urlsplit(settings.blobs_url)
    if url.scheme != "s3" or not url.netloc:
        raise Misconfigured("EASEL_BLOBS_URL is not of the form s3://bucket/prefix")
    from easel.lake.blobs.s3 import S3Blobs  # only where it is used: boto3 is an extra

    prefix = url.path.strip("/")
    secret = settings.s3_secret_key.get_secret_value() if settings.s3_secret_key else None
    return S3Blobs(
        url.netloc,
        prefix=f"{prefix}/" if prefix else "",
        endpoint=settings.s3_endpoint or None,
        region=settings.s3_region or None,
        access_key=settings.s3_access_key or None,
        secret_key=secret,
    )


def open_lake(settings: Settings, store: Store) -> Lake:
    return Lake(store, open_blobs(settings))


def signing_key(home: Path) -> bytes:
    """The key of this home; made once, readable by its owner only."""
    path = home / "signing.key"
    try:
        return path.read_bytes()
    except FileNotFoundError:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = home / f"signing.{secrets.token_hex(4)}"
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(32))
        try:
            os.link(partial, path)  # two servers that start at once agree on the first key
        except FileExistsError:
            pass
        finally:
            partial.unlink()
        return path.read_bytes()


class Addresses:
    """Where to send parts to and to read ranges from: the blob store itself where it can, else this server."""

    def __init__(self, lake: Lake, signer: Signer) -> None:
        self._lake, self.signer = lake, signer

    def put(self, stage: Stage, number: int) -> str:
        direct = self._lake.blobs.part_url(stage, number, VALID_SECONDS)
        path = f"{BLOBS}/stages/{stage.id}/{number}"
        return direct or self.signer.sign("PUT", path, {}, self._expires())

    def get(self, digest: Digest, offset: int, length: int) -> str:
        direct = self._lake.blobs.read_url(digest, offset, length, VALID_SECONDS)
        path = f"{BLOBS}/objects/{digest.hex()}"
        return direct or self.signer.sign("GET", path, {"offset": offset, "length": length}, self._expires())

    def _expires(self) -> int:
        return int(self._lake.store.clock.now().timestamp()) + VALID_SECONDS
