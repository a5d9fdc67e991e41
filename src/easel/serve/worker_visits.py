"""Visits to jobs on workers that joined: nothing can be opened there from here, so the worker is asked to come.

Who wants in waits; the worker hears of it with its next orders, connects to the job's socket and to us, and carries
bytes both ways (run/remote/visits.py). An empty message says that a side has said everything.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from fastapi import WebSocket, WebSocketDisconnect

from easel.errors import Conflict, TryLater
from easel.wire.worker import VisitAsked

PATIENCE_S = 15.0
READY = "ready"
_PIECE = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class _WaitingVisit:
    device: str
    key: str
    ours: asyncio.Future[socket.socket]


class WorkerVisits:
    """Those who wait for a worker. Used from the server's event loop alone.

    `call(device)` has the worker ask for orders at once.
    """

    def __init__(self, call: Callable[[str], None], patience_s: float = PATIENCE_S) -> None:
        self._call, self._patience_s = call, patience_s
        self._waiting: dict[str, _WaitingVisit] = {}
        self._untold: dict[str, list[VisitAsked]] = {}

    async def open(self, device: str, key: str) -> socket.socket:
        """Returns a stream to the job's socket on that device, when its worker has come."""
        visit = secrets.token_urlsafe(16)
        found: asyncio.Future[socket.socket] = asyncio.get_running_loop().create_future()
        self._waiting[visit] = _WaitingVisit(device, key, found)
        self._untold.setdefault(device, []).append(VisitAsked(visit=visit, key=key))
        self._call(device)
        try:
            return await asyncio.wait_for(found, self._patience_s)
        except TimeoutError:
            raise TryLater(
                f"the worker {device} does not come to open it: it is away, older than this server, or speaks to "
                "another server of this installation; try again in a moment"
            ) from None
        finally:
            self._waiting.pop(visit, None)
            self._forget(device, visit)

    def _forget(self, device: str, visit: str) -> None:
        left = [each for each in self._untold.pop(device, []) if each.visit != visit]
        if left:
            self._untold[device] = left

    def take(self, device: str) -> list[VisitAsked]:
        """Returns the visits that this worker has not heard of."""
        return self._untold.pop(device, [])

    async def carry(self, worker: WebSocket, visit: str, key: str) -> None:
        """Carries bytes between the worker that came and whoever waits for it, until both have said everything."""
        waiting = self._waiting.get(visit)
        if waiting is None or waiting.key != key:
            await worker.close(1008, "nobody waits for this visit any more")
            return
        try:
            said = await worker.receive_text()
        except (WebSocketDisconnect, KeyError):
            said = "its worker went away"
        if waiting.ours.done():
            return
        if said != READY:
            waiting.ours.set_exception(
                Conflict(f"job {key.partition('.')[0]} cannot be entered: {said[:200]}")
            )
            return
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=theirs)
        waiting.ours.set_result(ours)
        await _both_ways(worker, reader, writer)


async def _both_ways(worker: WebSocket, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    outwards = asyncio.create_task(_to_worker(worker, reader))
    inwards = asyncio.create_task(_from_worker(worker, writer))
    try:
        # A visitor who has said everything still listens; when the worker is gone, nobody does.
        await inwards
    except (OSError, WebSocketDisconnect, RuntimeError, KeyError):
        pass
    finally:
        outwards.cancel()
        with suppress(asyncio.CancelledError, OSError, WebSocketDisconnect, RuntimeError):
            await outwards
        writer.close()
        with suppress(RuntimeError):
            await worker.close()


async def _to_worker(worker: WebSocket, reader: asyncio.StreamReader) -> None:
    while piece := await reader.read(_PIECE):
        await worker.send_bytes(piece)
    await worker.send_bytes(b"")


async def _from_worker(worker: WebSocket, writer: asyncio.StreamWriter) -> None:
    while piece := await worker.receive_bytes():
        writer.write(piece)
        await writer.drain()
