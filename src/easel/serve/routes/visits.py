"""Coming in to a running job: a terminal over a websocket, and copies of its files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import PurePosixPath
from typing import Annotated

from anyio import to_thread
from fastapi import Query, WebSocket, WebSocketDisconnect
from fastapi.responses import StreamingResponse

from easel.errors import EaselError, InvalidInput
from easel.flow.jobs.visits import RunningAttempt, Visit, come_in, leave
from easel.records.identity import Caller
from easel.run import frames
from easel.serve.access import Member, State
from easel.serve.audit import note_failure
from easel.serve.exec_client import Streams
from easel.serve.problems import status_of
from easel.serve.router import Router
from easel.serve.routes.jobs import JobId
from easel.serve.socket_access import SocketAccess
from easel.serve.state import AppState

router = Router(prefix="/api/v1/projects/{project}/jobs", tags=["jobs"])
_SHELL = ("sh", "-c", "command -v bash >/dev/null && exec bash -i || exec sh -i")
_RECHECK_S = 5.0
REFUSED = 4000
"""The websocket's code for what is refused; the reason says why."""

socket_member = SocketAccess()


@router.websocket("/{job}/shell")
async def shell(
    socket: WebSocket,
    job: JobId,
    command: Annotated[list[str] | None, Query(max_length=200)] = None,
    rows: Annotated[int, Query(ge=1, le=4096)] = 24,
    columns: Annotated[int, Query(ge=1, le=4096)] = 80,
) -> None:
    """A terminal in a running job, for its owner and project admins.

    Binary messages are what is typed and shown; `{"rows": 40, "columns": 100}` is a new size; `{"exit": 0}` is the end.
    """
    state: AppState = socket.app.state.easel
    argv = list(command or _SHELL)
    try:
        caller = await to_thread.run_sync(socket_member.check_socket, socket)
        running = await to_thread.run_sync(_enter, state, caller, job, Visit.SHELL, " ".join(argv))
    except EaselError as error:
        note_failure(status_of(error))
        await socket.accept()  # only an open one can say why
        await _refuse(socket, error)
        return
    asked = {"argv": argv, "rows": rows, "columns": columns}
    try:
        await socket.accept()
        async with state.exec_client.opened(running, asked) as streams:
            await _carry(socket, streams)
    except EaselError as error:
        await _refuse(socket, error)
    finally:
        await to_thread.run_sync(_leave, state, caller, job, Visit.SHELL)


async def _refuse(socket: WebSocket, error: EaselError) -> None:
    with suppress(RuntimeError, WebSocketDisconnect):
        await socket.send_text(json.dumps({"error": error.kind, "detail": error.message}))
        await socket.close(REFUSED, error.message[:100])


async def _carry(socket: WebSocket, streams: Streams) -> None:
    """Carries bytes both ways until the program ends, the visitor leaves, or may no longer be here."""
    inwards = asyncio.create_task(_in(socket, streams[1]))
    outwards = asyncio.create_task(_out(socket, streams[0]))
    while not (inwards.done() or outwards.done()):
        await asyncio.wait({inwards, outwards}, timeout=_RECHECK_S, return_when=asyncio.FIRST_COMPLETED)
        try:
            await to_thread.run_sync(socket_member.check_socket, socket)
        except EaselError:
            break
    for task in (inwards, outwards):
        task.cancel()
    with suppress(asyncio.CancelledError, WebSocketDisconnect, RuntimeError, OSError, ValueError):
        await asyncio.gather(inwards, outwards)


async def _in(socket: WebSocket, writer: asyncio.StreamWriter) -> None:
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            return
        if message.get("bytes"):
            for start in range(0, len(message["bytes"]), frames.MOST):
                piece = message["bytes"][start : start + frames.MOST]
                writer.write(frames.frame(frames.DATA, piece))
        elif message.get("text"):
            size = json.loads(message["text"])
            writer.write(frames.frame(frames.RESIZE, frames.size(int(size["rows"]), int(size["columns"]))))
        await writer.drain()


async def _out(socket: WebSocket, reader: asyncio.StreamReader) -> None:
    async for kind, piece in _frames(reader):
        if kind == frames.EXIT:
            await socket.send_text(json.dumps({"exit": int(piece)}))
            await socket.close()
            return
        await socket.send_bytes(piece)


async def _frames(reader: asyncio.StreamReader) -> AsyncIterator[tuple[bytes, bytes]]:
    found = frames.FrameReader()
    while data := await reader.read(1 << 16):
        for each in found.feed(data):
            yield each


@router.get("/{job}/files", response_class=StreamingResponse)
async def copy_files(
    state: State,
    caller: Member,
    job: JobId,
    path: Annotated[str, Query(max_length=1000, pattern=r"^[^\x00]+$", examples=["output/model.pt"])],
) -> StreamingResponse:
    """A file or folder of a running job's working folder as a tar archive, for its owner and project admins."""
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts:
        raise InvalidInput(f"{path!r} must lie in the job's working folder: output/model.pt")
    running = await to_thread.run_sync(_enter, state, caller, job, Visit.COPY, path)
    argv = ["tar", "-C", "/job", "-cf", "-", "--", path]
    visit = state.exec_client.opened(running, {"argv": argv})
    streams = await visit.__aenter__()  # what refuses it is an answer, not a stream that breaks off
    return StreamingResponse(_tar(visit, streams), media_type="application/x-tar")


async def _tar(visit: AbstractAsyncContextManager[Streams], streams: Streams) -> AsyncIterator[bytes]:
    reader, _ = streams
    try:
        async for kind, piece in _frames(reader):
            if kind == frames.DATA:
                yield piece
    finally:
        await visit.__aexit__(None, None, None)


def _enter(state: AppState, caller: Caller, job: str, what: Visit, details: str) -> RunningAttempt:
    with state.store.write() as tx:
        return come_in(tx, caller, job, what, details)


def _leave(state: AppState, caller: Caller, job: str, what: Visit) -> None:
    with state.store.write() as tx:
        leave(tx, caller, job, what)
