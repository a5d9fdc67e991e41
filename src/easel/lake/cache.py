"""A folder of whole blobs that the jobs of one machine share. Filled once, read by many, never written to."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from easel.lake.digest import Digest, verified

Open = Callable[[], Iterator[bytes]]

# Every cached file carries this time. A job that writes through a hard link changes it, and is found out.
_SEALED_NS = 1_000_000_000


class BlobCache:
    """Blobs by digest, checked when they come in; the least recently used go beyond `limit` bytes."""

    def __init__(self, root: Path, limit: int = 50 * 2**30, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._root, self._limit, self._now_ns = root, limit, now_ns
        root.mkdir(parents=True, exist_ok=True)

    def path(self, digest: Digest, size: int, fetch: Open) -> Path:
        """The file that holds the blob, fetched first where it is not here or was tampered with."""
        path = self._root / digest.hex()[:2] / digest.hex()
        if _sealed(path, size):
            with contextlib.suppress(FileNotFoundError):  # the time of use is ours: many disks keep none
                os.utime(path, ns=(self._now_ns(), _SEALED_NS))
                return path
        path.parent.mkdir(exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=self._root, prefix="new-")
        temporary = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                for chunk in verified(fetch(), digest):
                    file.write(chunk)
            temporary.chmod(0o444)
            os.utime(temporary, ns=(self._now_ns(), _SEALED_NS))
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        return path

    def holds(self, digest: Digest, size: int) -> bool:
        return _sealed(self._root / digest.hex()[:2] / digest.hex(), size)

    def trim(self) -> int:
        """Remove the least recently used beyond the limit; returns the bytes freed. Links to them stay."""
        files = [path for path in self._root.glob("??/*") if path.is_file()]
        found = sorted((about.st_atime_ns, about.st_size, path) for path in files for about in [path.stat()])
        excess = sum(size for _, size, _ in found) - self._limit
        freed = 0
        for _, size, entry in found:
            if freed >= excess:
                break
            entry.unlink(missing_ok=True)
            freed += size
        return freed


def _sealed(path: Path, size: int) -> bool:
    try:
        about = path.stat()
    except FileNotFoundError:
        return False
    return about.st_size == size and about.st_mtime_ns == _SEALED_NS
