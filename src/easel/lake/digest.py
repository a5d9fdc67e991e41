"""BLAKE3 digests: the names of bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NewType

from blake3 import blake3

from easel.errors import EaselError, InvalidInput

Digest = NewType("Digest", bytes)
"""32 bytes; written as 64 hexadecimal digits where people or JSON read it."""

EMPTY = Digest(blake3(b"").digest())
_MMAP_FROM = 1 << 20  # below this, setting up a mapping costs more than reading


class Corrupt(EaselError):
    """Stored bytes no longer hash to their name: upload them again, or restore them from a backup."""

    kind = "corrupt"


def digest_of(data: bytes | memoryview) -> Digest:
    return Digest(blake3(data).digest())


def digest_file(path: Path) -> Digest:
    """Hash a file; large ones by a memory map and on all cores."""
    if path.stat().st_size < _MMAP_FROM:
        return digest_of(path.read_bytes())
    hasher = blake3(max_threads=blake3.AUTO)
    hasher.update_mmap(path)
    return Digest(hasher.digest())


def digest_chunks(chunks: Iterable[bytes]) -> Digest:
    hasher = blake3()
    for chunk in chunks:
        hasher.update(chunk)
    return Digest(hasher.digest())


def from_hex(text: str) -> Digest:
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        raw = b""
    if len(raw) != 32 or text != text.lower():
        raise InvalidInput(f"{text[:80]!r} is not a BLAKE3 digest: send 64 lower-case hexadecimal digits")
    return Digest(raw)


def verified(chunks: Iterable[bytes], expected: Digest) -> Iterator[bytes]:
    """Pass bytes through, holding the last chunk back until the whole is known to be right.

    Whoever reads to the end without an error has read exactly the bytes that `expected` names.
    """
    hasher, held = blake3(), b""
    for chunk in chunks:
        hasher.update(chunk)
        if held:
            yield held
        held = chunk
    if hasher.digest() != expected:
        raise Corrupt(
            f"the bytes of {expected.hex()} are damaged in the blob store: upload the file again, or restore them "
            "from a backup"
        )
    if held:
        yield held
