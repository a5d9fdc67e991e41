"""Connect the server to the socket of a job, here or on a worker that joined; run/exec_socket.py says what is sent."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from anyio import to_thread

from easel.errors import Conflict
from easel.flow.jobs.visits import RunningAttempt
from easel.run.exec_socket import dial
from easel.serve.worker_visits import WorkerVisits

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_LIMIT = 1 << 20


class ExecClient:
    """`attempts` is the folder of this machine's own attempts; `workers` reaches those of the others."""

    def __init__(self, attempts: Path, workers: WorkerVisits) -> None:
        self._attempts, self._workers = attempts, workers

    @asynccontextmanager
    async def opened(self, running: RunningAttempt, asked: Mapping[str, Any]) -> AsyncIterator[Streams]:
        """The two ends of a visit that asks for this."""
        stream = await self._dial(running, asked)
        reader, writer = await asyncio.open_connection(sock=stream, limit=_LIMIT)
        try:
            yield reader, writer
        finally:
            writer.close()

    async def connected(self, running: RunningAttempt, port: int, *, active: bool = False) -> socket.socket:
        """A connection to a port of the job's own network; `active` says that somebody works there."""
        return await self._dial(running, {"port": port, "active": active})

    async def say_active(self, running: RunningAttempt) -> None:
        """Tell the job's agent that somebody works in it."""
        (await self._dial(running, {"active": True})).close()

    async def _dial(self, running: RunningAttempt, asked: Mapping[str, Any]) -> socket.socket:
        if running.worker is not None:
            stream = await self._workers.open(running.worker, str(running.key))
        else:
            try:
                stream = await to_thread.run_sync(dial, self._attempts, str(running.key))
            except OSError as error:
                raise Conflict(
                    f"job {running.key.job_id} cannot be entered: it just began or ended, or it runs on the machine "
                    "of another server"
                ) from error
        stream.setblocking(False)
        await asyncio.get_running_loop().sock_sendall(stream, json.dumps(asked).encode() + b"\n")
        return stream
