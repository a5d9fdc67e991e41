"""Blobs in a folder: a stage is a sparse file that parts are written into, an object is that file renamed."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path

from easel.errors import EaselError, InvalidInput, Misconfigured, NotFound, TryLater
from easel.lake.blobs.store import (
    PART,
    FileSlice,
    Incoming,
    Stage,
    StagedObject,
    StoredObject,
    check_members,
    exactly,
    part_size,
)
from easel.lake.digest import Digest, digest_file, digest_of

_STAGE_ID = re.compile(r"[a-z0-9_-]{1,120}")
_CHUNK = 1 << 20
_ANOTHER_WAY = {errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS}
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class LocalBlobs:
    """`objects/ab/cd…` holds the objects by digest; `staging/<id>/` the file and one mark a part."""

    on_this_disk = True

    def __init__(self, root: Path, part: int = PART) -> None:
        self.root, self._part = root, part
        self._objects, self._staging = root / "objects", root / "staging"
        with _disk():
            self._objects.mkdir(parents=True, exist_ok=True)
            self._staging.mkdir(parents=True, exist_ok=True)

    def begin(self, stage_id: str, size: int) -> Stage:
        stage = Stage(stage_id, size, part_size(size, self._part))
        folder = self._folder(stage)
        with _disk():
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / "data").open("ab") as file:
                file.truncate(size)
        return stage

    def put_part(self, stage: Stage, number: int, chunks: Iterable[bytes]) -> None:
        length, mark = stage.part_length(number), self._mark(stage, number)
        with _disk(), self._writing(stage) as file:
            mark.unlink(missing_ok=True)
            start = (number - 1) * stage.part_size
            if isinstance(chunks, FileSlice) and chunks.length == length:
                _copy(chunks, file.fileno(), start)
            else:
                file.seek(start)
                for chunk in exactly(chunks, length):
                    _write(file.fileno(), chunk)
            # Not synced: after a power cut a mark may lie, which `check` finds out. Its sync is the one that counts.
            mark.touch()

    @contextlib.contextmanager
    def _writing(self, stage: Stage) -> Iterator[FileIO]:
        """The stage's file, which nobody checks meanwhile.

        Whoever still held it open for writing after it was checked could change bytes that others rely on. So writers
        share a lock that `check` must have alone, and `check` then takes the name away: who opened the file before and
        comes to the lock after sees that it is no longer the stage's.
        """
        path = self._folder(stage) / "data"
        try:
            with path.open("r+b", buffering=0) as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                if path.stat().st_ino != os.fstat(file.fileno()).st_ino:
                    raise FileNotFoundError(path)
                yield file
        except (FileNotFoundError, BlockingIOError):
            raise NotFound("this upload is complete or gone: start it again") from None

    def _seal(self, stage: Stage) -> Path:
        """Take the file from its writers; TryLater while one of them is at it."""
        path, sealed = self._folder(stage) / "data", self._folder(stage) / "checked"
        if sealed.exists():
            return sealed
        try:
            with path.open("r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.rename(sealed)
        except BlockingIOError:
            raise TryLater("a part is still arriving: wait for it, then finish", 1.0) from None
        except FileNotFoundError:
            if not sealed.exists():
                raise NotFound("this upload is gone: start it again") from None
        return sealed

    def _bytes(self, stage: Stage) -> Path:
        sealed = self._folder(stage) / "checked"
        return sealed if sealed.exists() else self._folder(stage) / "data"

    def parts(self, stage: Stage) -> frozenset[int]:
        try:
            names = [entry.name for entry in self._folder(stage).iterdir()]
        except FileNotFoundError:
            return frozenset()
        return frozenset(int(name[5:]) for name in names if name.startswith("part."))

    def is_open(self, stage: Stage) -> bool:
        return self._bytes(stage).exists()

    def part_url(self, stage: Stage, number: int, seconds: int) -> str | None:
        return None

    def check(self, stage: Stage, incoming: Incoming) -> None:
        missing = set(range(1, stage.part_count + 1)) - self.parts(stage)
        if missing:
            raise InvalidInput(f"parts {sorted(missing)[:5]} did not arrive: send them, then finish")
        try:
            check_members(incoming)
            with _disk():
                path = self._seal(stage)
                found = path.stat().st_size
                if found != incoming.size:
                    raise InvalidInput(f"{found} bytes arrived, not {incoming.size}: send them again")
                digest = _digest_and_sync(path)
                if digest != incoming.digest:
                    raise InvalidInput(
                        f"the bytes hash to {digest.hex()}, not {incoming.digest.hex()}: send them again"
                    )
                _check_slices(path, incoming)
        except InvalidInput:
            self.discard(stage)
            raise

    def read_stage(self, stage: Stage, offset: int, length: int) -> bytes:
        with _disk(), self._bytes(stage).open("rb") as file:
            return os.pread(file.fileno(), length, offset)

    def promote(self, stage: Stage, digest: Digest) -> None:
        source, target = self._folder(stage) / "checked", self._object(digest)
        with _disk():
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                with source.open("rb") as file:
                    os.fchmod(file.fileno(), 0o444)
                    os.fsync(file.fileno())
                # A fresh time of modification: the collector leaves young objects alone.
                os.utime(source)
                source.replace(target)
            except FileNotFoundError:
                if not target.exists():
                    raise NotFound("this upload is gone: start it again") from None
            _sync_folder(target.parent)
        self.discard(stage)

    def discard(self, stage: Stage) -> None:
        shutil.rmtree(self._folder(stage), ignore_errors=True)

    def read(self, digest: Digest, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
        path = self.path(digest)
        if path is None:
            raise NotFound(f"there are no bytes named {digest.hex()}")
        return _read(path, offset, length)

    def path(self, digest: Digest) -> Path | None:
        """The file that holds an object: for copies by reference on the same disk. Never write to it."""
        path = self._object(digest)
        return path if path.exists() else None

    def size(self, digest: Digest) -> int | None:
        found = self.find(digest)
        return found.size if found else None

    def find(self, digest: Digest) -> StoredObject | None:
        try:
            about = self._object(digest).stat()
        except FileNotFoundError:
            return None
        return StoredObject(digest, about.st_size, datetime.fromtimestamp(about.st_mtime, UTC))

    def read_url(self, digest: Digest, offset: int, length: int, seconds: int) -> str | None:
        return None

    def delete(self, digest: Digest) -> None:
        with _disk():
            self._object(digest).unlink(missing_ok=True)

    def objects(self) -> Iterator[StoredObject]:
        for folder in sorted(self._objects.iterdir()):
            for entry in os.scandir(folder):
                with contextlib.suppress(FileNotFoundError):
                    about = entry.stat()
                    modified = datetime.fromtimestamp(about.st_mtime, UTC)
                    yield StoredObject(Digest(bytes.fromhex(entry.name)), about.st_size, modified)

    def stages(self) -> Iterator[StagedObject]:
        for entry in os.scandir(self._staging):
            with contextlib.suppress(FileNotFoundError):
                yield StagedObject(entry.name, datetime.fromtimestamp(entry.stat().st_mtime, UTC))

    def _object(self, digest: Digest) -> Path:
        name = digest.hex()
        return self._objects / name[:2] / name

    def _folder(self, stage: Stage) -> Path:
        if not _STAGE_ID.fullmatch(stage.id):
            raise InvalidInput(f"{stage.id[:40]!r} is not the name of an upload")
        return self._staging / stage.id

    def _mark(self, stage: Stage, number: int) -> Path:
        return self._folder(stage) / f"part.{number}"


def _digest_and_sync(path: Path) -> Digest:
    """Hash on the processors while the disk writes: for a large object each takes as long as the other."""
    with path.open("r+b") as file, ThreadPoolExecutor(1) as pool:
        synced = pool.submit(os.fsync, file.fileno())
        digest = digest_file(path)
        synced.result()  # an error of the disk is told to this descriptor, and only once
    return digest


def _copy(source: FileSlice, target: int, start: int) -> None:
    """Copies in the kernel: by sharing blocks where the file system can, else from page cache to page cache."""
    done = 0
    while done < source.length:
        left, at = source.length - done, source.offset + done
        try:
            count = os.copy_file_range(source.descriptor, target, left, at, start + done)
        except OSError as error:
            if error.errno not in _ANOTHER_WAY:
                raise
            os.lseek(target, start + done, os.SEEK_SET)
            count = os.sendfile(target, source.descriptor, at, left)
        if count == 0:
            raise InvalidInput(f"the part ended after {done} of {source.length} bytes: send it again")
        done += count


def _check_slices(path: Path, incoming: Incoming) -> None:
    if not incoming.members or incoming.size == 0:
        return
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
        memoryview(mapped) as whole,
    ):
        for member in incoming.members:
            with whole[member.offset : member.offset + member.size] as piece:
                found = digest_of(piece)
            if found != member.digest:
                raise InvalidInput(f"bytes at {member.offset} of the pack are not {member.digest.hex()}")


def _read(path: Path, offset: int, length: int | None) -> Iterator[bytes]:
    with path.open("rb", buffering=0) as file:
        file.seek(offset)
        left = length if length is not None else path.stat().st_size - offset
        while left > 0:
            chunk = file.read(min(_CHUNK, left))
            if not chunk:
                return
            left -= len(chunk)
            yield chunk


def _write(descriptor: int, chunk: bytes) -> None:
    view = memoryview(chunk)
    while view:
        view = view[os.write(descriptor, view) :]


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _disk() -> Iterator[None]:
    """The disk's troubles, named for their remedy."""
    try:
        yield
    except EaselError:
        raise
    except OSError as error:
        if error.errno in _FULL:
            raise TryLater("the blob store's disk is full: free space or run `easel gc`", 60.0) from error
        if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
            raise Misconfigured(f"the blob store's folder cannot be used: {error.strerror}") from error
        raise
