"""Blobs in an S3-compatible bucket. Senders and readers talk to the bucket through presigned addresses.

S3 cannot compute BLAKE3, so `check` reads the stage once. A stage is then copied, inside S3, to its
name: the address that the sender holds points at the stage and can never touch a checked object.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import boto3
from blake3 import blake3
from boto3.exceptions import Boto3Error
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, IncompleteReadError
from urllib3.exceptions import HTTPError

from easel.errors import InvalidInput, Misconfigured, NotFound, TryLater
from easel.lake.blobs.store import (
    PART,
    Incoming,
    PackMember,
    Stage,
    StagedObject,
    StoredObject,
    check_members,
    exactly,
    part_size,
)
from easel.lake.digest import Digest

_CHUNK = 1 << 20
_GONE = {"404", "NoSuchKey", "NoSuchUpload"}
_REFUSED = {"403", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "NoSuchBucket"}


def make_client(
    endpoint: str | None, region: str | None, access_key: str | None, secret_key: str | None
) -> Any:
    """A client of an S3-compatible service; AWS without an `endpoint`."""
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=region or "us-east-1",
        aws_access_key_id=access_key,
        aws_secret_access_key=secret_key,
        config=Config(
            signature_version="s3v4",
            retries={"mode": "standard", "max_attempts": 4},
            s3={"addressing_style": "path" if endpoint else "auto"},
            connect_timeout=5,
            read_timeout=60,
            max_pool_connections=32,
            # Other makers' S3 do not know AWS's newest checksum headers; BLAKE3 checks everything anyway.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )


class S3Blobs:
    """Credentials that are not given come from where AWS tools look for them."""

    on_this_disk = False

    def __init__(
        self,
        bucket: str,
        *,
        prefix: str = "",
        endpoint: str | None = None,
        region: str | None = None,
        access_key: str | None = None,
        secret_key: str | None = None,
        part: int = PART,
    ) -> None:
        self._bucket, self._prefix, self._part = bucket, prefix, part
        self._client: Any = make_client(endpoint, region, access_key, secret_key)

    def begin(self, stage_id: str, size: int) -> Stage:
        stage = Stage(stage_id, size, part_size(size, self._part))
        if stage.part_count == 1:
            return stage
        with in_bucket():
            answer = self._client.create_multipart_upload(**self._at(self._stage_key(stage)))
        return replace(stage, handle=answer["UploadId"])

    def put_part(self, stage: Stage, number: int, chunks: Iterable[bytes]) -> None:
        body = b"".join(exactly(chunks, stage.part_length(number)))
        at = self._at(self._stage_key(stage))
        with in_bucket():
            if stage.handle:
                self._client.upload_part(**at, UploadId=stage.handle, PartNumber=number, Body=body)
            else:
                self._client.put_object(**at, Body=body)

    def parts(self, stage: Stage) -> frozenset[int]:
        key = self._stage_key(stage)
        if not stage.handle:
            return frozenset({1} if self._size(key) == stage.size else ())
        with contextlib.suppress(NotFound):
            return frozenset(
                part["PartNumber"]
                for part in self._listed(stage)
                if part["PartNumber"] <= stage.part_count
                and part["Size"] == stage.part_length(part["PartNumber"])
            )
        # Completed already: everything arrived.
        return frozenset(range(1, stage.part_count + 1) if self._size(key) == stage.size else ())

    def is_open(self, stage: Stage) -> bool:
        if not stage.handle:
            return True  # a plain PUT needs no preparation
        try:
            self._listed(stage)
        except NotFound:  # completed by an earlier attempt, or aborted
            return self._size(self._stage_key(stage)) == stage.size
        return True

    def part_url(self, stage: Stage, number: int, seconds: int) -> str | None:
        length, at = stage.part_length(number), self._at(self._stage_key(stage))
        if stage.handle:
            operation, more = "upload_part", {"UploadId": stage.handle, "PartNumber": number}
        else:
            operation, more = "put_object", {}
        # The length is signed too: a sender cannot store more than was agreed.
        parameters = {**at, **more, "ContentLength": length}
        return str(self._client.generate_presigned_url(operation, Params=parameters, ExpiresIn=seconds))

    def check(self, stage: Stage, incoming: Incoming) -> None:
        missing = set(range(1, stage.part_count + 1)) - self.parts(stage)
        if missing:
            raise InvalidInput(f"parts {sorted(missing)[:5]} did not arrive: send them, then finish")
        try:
            check_members(incoming)
            self._complete(stage)
            if not stage.handle:
                # The sender may PUT to the signed address as long as it is valid: what is checked lies elsewhere.
                with in_bucket():
                    source = self._at(self._stage_key(stage))
                    self._client.copy(source, self._bucket, self._sealed_key(stage))
            _check_stream(self._read(self._sealed_key(stage), 0, None), incoming)
        except InvalidInput:
            self.discard(stage)
            raise

    def read_stage(self, stage: Stage, offset: int, length: int) -> bytes:
        return b"".join(self._read(self._sealed_key(stage), offset, length))

    def promote(self, stage: Stage, digest: Digest) -> None:
        source = self._at(self._sealed_key(stage))
        try:
            with in_bucket():  # `copy` is server-side, and in parts where the object is large
                self._client.copy(source, self._bucket, self._key(digest))
        except NotFound:
            if self.size(digest) is None:
                raise NotFound("this upload is gone: start it again") from None
        self.discard(stage)

    def discard(self, stage: Stage) -> None:
        at = self._at(self._stage_key(stage))
        if stage.handle:
            with contextlib.suppress(NotFound), in_bucket():
                self._client.abort_multipart_upload(**at, UploadId=stage.handle)
        with in_bucket():
            self._client.delete_object(**at)
            if not stage.handle:
                self._client.delete_object(**self._at(self._sealed_key(stage)))

    def read(self, digest: Digest, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
        size = self.size(digest)
        if size is None:
            raise NotFound(f"there are no bytes named {digest.hex()}")
        if size == 0 or length == 0 or offset >= size:
            return iter(())
        return self._read(self._key(digest), offset, length)

    def size(self, digest: Digest) -> int | None:
        return self._size(self._key(digest))

    def find(self, digest: Digest) -> StoredObject | None:
        found = self._head(self._key(digest))
        return StoredObject(digest, int(found["ContentLength"]), found["LastModified"]) if found else None

    def read_url(self, digest: Digest, offset: int, length: int, seconds: int) -> str | None:
        if length == 0:
            return None
        parameters = {**self._at(self._key(digest)), "Range": f"bytes={offset}-{offset + length - 1}"}
        return str(self._client.generate_presigned_url("get_object", Params=parameters, ExpiresIn=seconds))

    def delete(self, digest: Digest) -> None:
        with in_bucket():
            self._client.delete_object(**self._at(self._key(digest)))

    def objects(self) -> Iterator[StoredObject]:
        for item in self._list(f"{self._prefix}objects/"):
            name = item["Key"].rpartition("/")[2]
            yield StoredObject(Digest(bytes.fromhex(name)), item["Size"], item["LastModified"])

    def stages(self) -> Iterator[StagedObject]:
        base = f"{self._prefix}staging/"
        for item in self._list(base):
            yield StagedObject(item["Key"].removeprefix(base), item["LastModified"])
        with in_bucket():
            pages = self._client.get_paginator("list_multipart_uploads")
            for page in pages.paginate(Bucket=self._bucket, Prefix=base):
                for item in page.get("Uploads", ()):
                    name = item["Key"].removeprefix(base)
                    yield StagedObject(name, item["Initiated"], item["UploadId"])

    def _key(self, digest: Digest) -> str:
        name = digest.hex()
        return f"{self._prefix}objects/{name[:2]}/{name}"

    def _stage_key(self, stage: Stage) -> str:
        return f"{self._prefix}staging/{stage.id}"

    def _sealed_key(self, stage: Stage) -> str:
        """Returns a key that no sender's address leads to: a completed multipart upload takes no more parts."""
        return self._stage_key(stage) if stage.handle else f"{self._stage_key(stage)}.checked"

    def _at(self, key: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": key}

    def _size(self, key: str) -> int | None:
        found = self._head(key)
        return int(found["ContentLength"]) if found else None

    def _head(self, key: str) -> dict[str, Any] | None:
        try:
            with in_bucket():
                answer: dict[str, Any] = self._client.head_object(**self._at(key))
                return answer
        except NotFound:
            return None

    def _listed(self, stage: Stage) -> list[dict[str, Any]]:
        with in_bucket():
            pages = self._client.get_paginator("list_parts").paginate(
                **self._at(self._stage_key(stage)), UploadId=stage.handle
            )
            return [part for page in pages for part in page.get("Parts", ())]

    def _list(self, prefix: str) -> Iterator[dict[str, Any]]:
        with in_bucket():
            for page in self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=prefix
            ):
                yield from page.get("Contents", ())

    def _complete(self, stage: Stage) -> None:
        if not stage.handle:
            return
        with contextlib.suppress(NotFound), in_bucket():  # NotFound: completed by an earlier attempt
            parts = [{"PartNumber": p["PartNumber"], "ETag": p["ETag"]} for p in self._listed(stage)]
            self._client.complete_multipart_upload(
                **self._at(self._stage_key(stage)), UploadId=stage.handle, MultipartUpload={"Parts": parts}
            )

    def _read(self, key: str, offset: int, length: int | None) -> Iterator[bytes]:
        """A cut-off body is asked for again from where it broke, a few times."""
        end = None if length is None else offset + length
        tries = 4
        while end is None or offset < end:
            tries -= 1
            last = "" if end is None else str(end - 1)
            ranged = {"Range": f"bytes={offset}-{last}"} if offset or last else {}
            try:
                with in_bucket():
                    answer = self._client.get_object(**self._at(key), **ranged)
                    for chunk in answer["Body"].iter_chunks(_CHUNK):
                        offset += len(chunk)
                        yield chunk
                return
            except TryLater:
                if tries == 0:
                    raise


def _check_stream(chunks: Iterable[bytes], incoming: Incoming) -> None:
    """Compare whole and members in one pass; at most one chunk and one member are in memory."""
    whole, total, buffer = blake3(), 0, bytearray()
    members: Iterator[PackMember] = iter(incoming.members)
    member = next(members, None)
    for chunk in chunks:
        whole.update(chunk)
        total += len(chunk)
        if member is None:
            continue
        buffer += chunk
        start = 0
        while member is not None and len(buffer) - start >= member.size:
            if blake3(bytes(buffer[start : start + member.size])).digest() != member.digest:
                raise InvalidInput(f"bytes at {member.offset} of the pack are not {member.digest.hex()}")
            start += member.size
            member = next(members, None)
        del buffer[:start]
    if total != incoming.size or whole.digest() != incoming.digest:
        raise InvalidInput(
            f"{total} bytes arrived that hash to {whole.hexdigest()}, not {incoming.size} bytes "
            f"that hash to {incoming.digest.hex()}: send them again"
        )


@contextlib.contextmanager
def in_bucket() -> Iterator[None]:
    """The bucket's troubles, named for their remedy. The client has retried by itself before."""
    try:
        yield
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        if code in _REFUSED:
            raise Misconfigured(f"the bucket refuses us ({code}): check its name and credentials") from error
        if code in _GONE:
            raise NotFound("the object is not in the bucket") from error
        if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500) >= 500:
            raise TryLater(f"the bucket answers {code}: try again shortly") from error
        raise
    except (BotoCoreError, Boto3Error, IncompleteReadError, HTTPError, ConnectionError) as error:
        raise TryLater(f"the bucket cannot be reached ({type(error).__name__}): try again shortly") from error
