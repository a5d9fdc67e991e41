"""How a terminal travels over one stream: pieces with a kind and a length. Pure."""

from __future__ import annotations

import struct
from collections.abc import Iterator

DATA, RESIZE, EXIT = b"d", b"r", b"x"
_HEAD = struct.Struct(">cI")
MOST = 1 << 20


def frame(kind: bytes, data: bytes) -> bytes:
    """One piece; DATA both ways, RESIZE (rows, columns) in, EXIT (the exit code) out."""
    return _HEAD.pack(kind, len(data)) + data


def size(rows: int, columns: int) -> bytes:
    return struct.pack(">HH", min(rows, 4096), min(columns, 4096))


def sized(data: bytes) -> tuple[int, int]:
    rows, columns = struct.unpack(">HH", data)
    return rows, columns


class FrameReader:
    """Feed it bytes as they come; it gives whole pieces. A piece that is too long is a ValueError."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        self._rest += data
        while len(self._rest) >= _HEAD.size:
            kind, length = _HEAD.unpack_from(self._rest)
            if length > MOST:
                raise ValueError("a piece of a terminal is too long")
            end = _HEAD.size + length
            if len(self._rest) < end:
                return
            piece, self._rest = self._rest[_HEAD.size : end], self._rest[end:]
            yield kind, piece
