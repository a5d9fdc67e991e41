"""A folder or a part of a bucket in which named files lie: where backups go."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import parse_qs, urlsplit

from easel.errors import Misconfigured, NotFound
from easel.lake.blobs.address import ACCESS_KEY, SECRET_KEY, open_blobs
from easel.lake.blobs.store import BlobStore


class Place(Protocol):
    """Files by name (`a/b`). A name stands for whole content or for nothing."""

    def put_file(self, name: str, source: Path) -> None:
        """Copy a file here; one of this name is replaced."""

    def get_file(self, name: str, target: Path) -> None:
        """Copy a file from here. NotFound if there is none."""

    def names(self, prefix: str = "", *, partial: bool = False) -> list[str]:
        """The names that begin with `prefix`, sorted; those of blobs are left out.

        With `partial` those of copies that were cut off are among them: `delete` removes them too."""

    def delete(self, name: str) -> None:
        """Remove a file; one that is gone already is fine."""

    def blobs(self) -> BlobStore:
        """The blobs that lie here, under `blobs/`."""


BLOBS = "blobs"


class FolderPlace:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put_file(self, name: str, source: Path) -> None:
        target = self._folder / name
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = target.with_name(f"{target.name}.partial")
        partial.unlink(missing_ok=True)
        with (
            source.open("rb") as reading,
            os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as writing,
        ):
            shutil.copyfileobj(reading, writing, 1 << 20)
            writing.flush()
            os.fsync(writing.fileno())
        partial.replace(target)

    def get_file(self, name: str, target: Path) -> None:
        try:
            shutil.copyfile(self._folder / name, target)
        except FileNotFoundError:
            raise NotFound(f"there is no {name} in {self._folder}") from None

    def names(self, prefix: str = "", *, partial: bool = False) -> list[str]:
        if not self._folder.is_dir():
            return []
        found: list[str] = []
        for root, folders, files in os.walk(self._folder):
            at = Path(root)
            if at == self._folder:
                folders[:] = [folder for folder in folders if folder != BLOBS]
            found += [str((at / file).relative_to(self._folder)) for file in files]
        return sorted(
            name for name in found if name.startswith(prefix) and (partial or not name.endswith(".partial"))
        )

    def delete(self, name: str) -> None:
        path = self._folder / name
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not empty yet
            path.parent.rmdir()

    def blobs(self) -> BlobStore:
        return open_blobs(str(self._folder / BLOBS))


class BucketPlace:
    def __init__(self, address: str, environment: Mapping[str, str]) -> None:
        from easel.lake.blobs.s3 import make_client

        url = urlsplit(address)
        asked = {name: values[0] for name, values in parse_qs(url.query).items()}
        prefix = url.path.strip("/")
        self._bucket, self._prefix = url.netloc, f"{prefix}/" if prefix else ""
        self._query, self._environment = url.query, environment
        self._client = make_client(
            asked.get("endpoint"),
            asked.get("region"),
            environment.get(ACCESS_KEY) or None,
            environment.get(SECRET_KEY) or None,
        )

    def put_file(self, name: str, source: Path) -> None:
        from easel.lake.blobs.s3 import in_bucket

        with in_bucket():
            self._client.upload_file(str(source), self._bucket, self._prefix + name)

    def get_file(self, name: str, target: Path) -> None:
        from easel.lake.blobs.s3 import in_bucket

        with in_bucket():
            self._client.download_file(self._bucket, self._prefix + name, str(target))

    def names(self, prefix: str = "", *, partial: bool = False) -> list[str]:
        """Folders are asked for one by one, so that millions of blobs are not listed. All are whole."""
        from easel.lake.blobs.s3 import in_bucket

        found: list[str] = []
        waiting = [""]
        with in_bucket():
            while waiting:
                at = self._prefix + waiting.pop()
                pages = self._client.get_paginator("list_objects_v2").paginate(
                    Bucket=self._bucket, Prefix=at, Delimiter="/"
                )
                for page in pages:
                    found += [each["Key"].removeprefix(self._prefix) for each in page.get("Contents", ())]
                    below = (
                        each["Prefix"].removeprefix(self._prefix) for each in page.get("CommonPrefixes", ())
                    )
                    waiting += [
                        folder
                        for folder in below
                        if folder != f"{BLOBS}/" and (folder.startswith(prefix) or prefix.startswith(folder))
                    ]
        return sorted(name for name in found if name.startswith(prefix))

    def delete(self, name: str) -> None:
        from easel.lake.blobs.s3 import in_bucket

        with in_bucket():
            self._client.delete_object(Bucket=self._bucket, Key=self._prefix + name)

    def blobs(self) -> BlobStore:
        query = f"?{self._query}" if self._query else ""
        return open_blobs(f"s3://{self._bucket}/{self._prefix}{BLOBS}{query}", self._environment)


def open_place(address: str, environment: Mapping[str, str] = os.environ) -> Place:
    """The place at a path, or at `s3://bucket/prefix?endpoint=…&region=…`."""
    if not address.startswith("s3:"):
        return FolderPlace(Path(address))
    try:
        return BucketPlace(address, environment)
    except ModuleNotFoundError as error:
        raise Misconfigured(f"buckets need {error.name}: pip install 'easel-ml[s3]'") from error
