"""The body of a request as a thread reads it: in large blocks, while the network brings small pieces."""

from __future__ import annotations

from collections.abc import Iterator

from anyio import from_thread
from fastapi import Request
from starlette.requests import ClientDisconnect

from easel.errors import InvalidInput

BLOCK = 4 * 2**20


def arriving(request: Request) -> Iterator[bytes]:
    """Yields the bytes of a request in a worker thread, which waits for the event loop."""
    pieces_of = request.stream()

    async def next_block() -> bytes:
        pieces, size = [], 0
        try:
            async for piece in pieces_of:
                pieces.append(piece)
                size += len(piece)
                if size >= BLOCK:
                    break
        except ClientDisconnect:
            raise InvalidInput("the connection broke off: send the part again") from None
        return b"".join(pieces)

    while block := from_thread.run(next_block):
        yield block
