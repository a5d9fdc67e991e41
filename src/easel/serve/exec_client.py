"""Connect the server to the socket of a job that runs on this machine; run/exec_socket.py says what is sent."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from anyio import to_thread

from easel.errors import Conflict
from easel.records.attempt import AttemptKey
from easel.run.exec_socket import exec_socket_path

_CONNECT_S = 5.0
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_LIMIT = 1 << 20


@asynccontextmanager
async def opened(home: Path, key: AttemptKey, asked: Mapping[str, Any]) -> AsyncIterator[Streams]:
    """The two ends of a visit that asks for this."""
    stream = await to_thread.run_sync(_dial, home, key, asked)
    reader, writer = await asyncio.open_connection(sock=stream, limit=_LIMIT)
    try:
        yield reader, writer
    finally:
        writer.close()


async def connected(home: Path, key: AttemptKey, port: int) -> socket.socket:
    """A connection to a port of the job's own network."""
    return await to_thread.run_sync(_dial, home, key, {"port": port})


async def say_active(home: Path, key: AttemptKey) -> None:
    """Tell the job's agent that somebody works in it."""
    (await to_thread.run_sync(_dial, home, key, {"active": True})).close()


def _dial(home: Path, key: AttemptKey, asked: Mapping[str, Any]) -> socket.socket:
    path = exec_socket_path(home / "run" / "attempts", str(key))
    stream = socket.socket(socket.AF_UNIX)
    stream.settimeout(_CONNECT_S)
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:  # the path itself may be too long for a socket
            stream.connect(f"/proc/self/fd/{folder}/{path.name}")
        finally:
            os.close(folder)
        stream.sendall(json.dumps(asked).encode() + b"\n")
    except OSError as error:
        stream.close()
        raise Conflict(
            f"job {key.job_id} cannot be entered here: it just ended, or it runs on another device, "
            "where shells and sessions cannot be opened yet"
        ) from error
    stream.setblocking(False)
    return stream
