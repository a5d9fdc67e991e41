"""The lake of a running server: its blob store from the settings, and the key that signs addresses."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from urllib.parse import urlsplit

from easel.flow.lake.upload import Lake
from easel.lake.blobs.address import ACCESS_KEY, SECRET_KEY, bucket_address
from easel.lake.blobs.address import open_blobs as open_address
from easel.lake.blobs.signing import Signer
from easel.lake.blobs.store import BlobStore, Stage
from easel.lake.digest import Digest
from easel.serve.settings import Settings
from easel.store.engine import Store

VALID_SECONDS = 3600
BLOBS = "/blobs"


def blobs_address(settings: Settings) -> str:
    """A folder under `home`, unless `blobs_url` names a bucket."""
    if not settings.blobs_url:
        return str(settings.folder / "blobs")
    return bucket_address(settings.blobs_url, settings.s3_endpoint, settings.s3_region)


def blobs_credentials(settings: Settings) -> dict[str, str]:
    """What whoever opens that address must have in its environment."""
    if not settings.blobs_url or not settings.s3_access_key:
        return {}
    secret = settings.s3_secret_key.get_secret_value() if settings.s3_secret_key else ""
    return {ACCESS_KEY: settings.s3_access_key, SECRET_KEY: secret}


def open_blobs(settings: Settings) -> BlobStore:
    return open_address(blobs_address(settings), blobs_credentials(settings))


def blob_origins(settings: Settings) -> tuple[str, ...]:
    """Where a page may send parts to and read ranges from besides this server: the bucket's own addresses."""
    if not settings.blobs_url:
        return ()
    if settings.s3_endpoint:
        address = urlsplit(settings.s3_endpoint)
        return (f"{address.scheme}://{address.netloc}",)
    bucket = urlsplit(settings.blobs_url).netloc
    hosts = [f"{bucket}.s3.amazonaws.com", "s3.amazonaws.com"]
    if settings.s3_region:
        hosts += [f"{bucket}.s3.{settings.s3_region}.amazonaws.com", f"s3.{settings.s3_region}.amazonaws.com"]
    return tuple(f"https://{host}" for host in hosts)


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
