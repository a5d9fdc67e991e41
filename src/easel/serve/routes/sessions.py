"""Interactive sessions under Easel's own address: what a job serves, passed on to its owner, with their usual log-in.

The pages share our origin, so whoever opens them trusts the job with their session: only its owner does. Admins of the
project come in by a terminal.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Annotated, Any

import httpcore
from anyio import to_thread
from fastapi import Depends, Path, Request, WebSocket, WebSocketDisconnect
from fastapi.responses import StreamingResponse
from starlette.requests import HTTPConnection
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as connect_websocket
from websockets.exceptions import ConnectionClosed, WebSocketException

from easel.errors import EaselError
from easel.flow.jobs.sessions import Session, open_session
from easel.records.identity import Caller
from easel.serve.access import SESSION_COOKIE, State
from easel.serve.audit import note_failure
from easel.serve.problems import status_of
from easel.serve.router import Router
from easel.serve.socket_access import SessionAccess
from easel.serve.state import AppState

router = Router(prefix="/sessions", include_in_schema=False)
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
JobId = Annotated[str, Path(max_length=60)]
owner = SessionAccess()
_HOPS = frozenset(
    {b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"proxy-authenticate"}
)
_OURS = frozenset({b"authorization", b"cookie", b"host", b"x-csrf-token"})
_RECHECK_S = 5.0


@router.api_route("/{job}/{path:path}", methods=METHODS)
async def page(
    request: Request, state: State, job: JobId, caller: Annotated[Caller, Depends(owner)]
) -> StreamingResponse:
    """Pass a request on to the session's program, for its owner."""
    session = await to_thread.run_sync(_session, state, caller, job)
    works = request.method not in ("GET", "HEAD", "OPTIONS")
    stream = await state.exec_client.connected(session.running, session.port, active=works)
    pool = httpcore.AsyncConnectionPool(network_backend=_Given(stream))
    target = request.scope.get("raw_path") or request.url.path.encode()
    query = request.url.query.encode()
    asked = httpcore.Request(
        request.method.encode(),
        httpcore.URL(scheme=b"http", host=b"127.0.0.1", port=session.port, target=_target(target, query)),
        headers=_headers_in(request, session.port),
        content=request.stream() if request.method not in ("GET", "HEAD") else None,
    )
    try:
        answer = await pool.handle_async_request(asked)
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException):
        await pool.aclose()
        return StreamingResponse(
            iter(
                [
                    b"The session does not answer yet: its program is starting, or has ended. Reload in a moment.\n"
                ]
            ),
            503,
            headers={"Retry-After": "1", "Content-Type": "text/plain"},
        )
    made = StreamingResponse(_body(answer, pool), answer.status)
    made.raw_headers = _headers_out(answer.headers, job)
    return made


def _target(path: bytes, query: bytes) -> bytes:
    return path + (b"?" + query if query else b"")


def _headers_in(request: HTTPConnection, port: int) -> list[tuple[bytes, bytes]]:
    """Returns the caller's headers without what proves to us who they are."""
    kept = [
        (name, value)
        for name, value in request.headers.raw
        if name.lower() not in _HOPS | _OURS and not name.lower().startswith(b"sec-websocket-")
    ]
    cookies = "; ".join(
        f"{name}={value}" for name, value in request.cookies.items() if name != SESSION_COOKIE
    )
    # Programs compare the host with the origin: they see the address that the browser has.
    host = request.headers.get("host", f"127.0.0.1:{port}")
    return [(b"host", host.encode()), *kept, *([(b"cookie", cookies.encode())] if cookies else [])]


def _headers_out(headers: list[tuple[bytes, bytes]], job: str) -> list[tuple[bytes, bytes]]:
    """Returns the program's headers; its cookies stay under its own path and cannot stand for ours."""
    found: list[tuple[bytes, bytes]] = []
    for name, value in headers:
        if name.lower() in _HOPS:
            continue
        if name.lower() == b"set-cookie":
            if value.strip().startswith(SESSION_COOKIE.encode()):
                continue
            parts = [
                part
                for part in value.split(b";")
                if not part.strip().lower().startswith((b"path=", b"domain="))
            ]
            value = b";".join([*parts, f" Path=/sessions/{job}/".encode()])
        found.append((name.lower(), value))
    names = {name for name, _ in found}
    if b"content-security-policy" not in names:
        found.append((b"content-security-policy", b"frame-ancestors 'self'"))
    return found


async def _body(answer: httpcore.Response, pool: httpcore.AsyncConnectionPool) -> AsyncIterator[bytes]:
    try:
        async for piece in answer.aiter_stream():
            yield piece
    finally:
        await answer.aclose()
        await pool.aclose()


class _Given(httpcore.AsyncNetworkBackend):
    """One connection that is open already."""

    def __init__(self, stream: socket.socket) -> None:
        self._stream = stream

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore.AsyncNetworkStream:
        return _Stream(*await asyncio.open_connection(sock=self._stream))


class _Stream(httpcore.AsyncNetworkStream):
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            return await self._reader.read(max_bytes)
        except OSError as error:
            raise httpcore.ReadError(str(error)) from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        try:
            self._writer.write(buffer)
            await self._writer.drain()
        except OSError as error:
            raise httpcore.WriteError(str(error)) from error

    async def aclose(self) -> None:
        self._writer.close()

    def get_extra_info(self, info: str) -> Any:
        return None


# Websockets: kernels and terminals of the session. -----------------------------------------------------------


@router.websocket("/{job}/{path:path}")
async def channel(browser: WebSocket, job: JobId) -> None:
    """Pass a websocket on to the session's program, for its owner."""
    state: AppState = browser.app.state.easel
    try:
        caller = await to_thread.run_sync(owner.check_socket, browser)
        session = await to_thread.run_sync(_session, state, caller, job)
        stream = await state.exec_client.connected(session.running, session.port)
    except EaselError as error:
        note_failure(status_of(error))
        await browser.close(1008)
        return
    path = _target(browser.scope.get("raw_path") or browser.url.path.encode(), browser.url.query.encode())
    headers = {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in _headers_in(browser, session.port)
        if name.lower() not in (b"host", b"origin")
    }
    origin = browser.headers.get("origin")
    host = browser.headers.get("host", f"127.0.0.1:{session.port}")
    asked: Mapping[str, Any] = {"additional_headers": headers, "origin": origin, "max_size": None}
    protocols = browser.scope.get("subprotocols") or None
    try:
        async with connect_websocket(
            f"ws://{host}{path.decode('latin-1')}", sock=stream, subprotocols=protocols, proxy=None, **asked
        ) as program:
            await browser.accept(program.subprotocol)
            await _both_ways(browser, program, state, session)
    except (OSError, WebSocketException, EaselError, TimeoutError):
        with suppress(RuntimeError):
            await browser.close(1011)


async def _both_ways(
    browser: WebSocket, program: ClientConnection, state: AppState, session: Session
) -> None:
    tasks = {
        asyncio.create_task(_from_browser(browser, program, state, session)),
        asyncio.create_task(_from_program(browser, program)),
    }
    while not any(task.done() for task in tasks):
        await asyncio.wait(tasks, timeout=_RECHECK_S, return_when=asyncio.FIRST_COMPLETED)
        try:
            await to_thread.run_sync(owner.check_socket, browser)
        except EaselError:
            break
    for task in tasks:
        task.cancel()
    with suppress(asyncio.CancelledError, ConnectionClosed, WebSocketDisconnect, RuntimeError):
        await asyncio.gather(*tasks)
    with suppress(RuntimeError):
        await browser.close()


async def _from_browser(
    browser: WebSocket, program: ClientConnection, state: AppState, session: Session
) -> None:
    """What somebody sends over a websocket is work: keys in a terminal, cells to run."""
    loop = asyncio.get_running_loop()
    said, telling = 0.0, None
    while True:
        message = await browser.receive()
        if message["type"] == "websocket.disconnect":
            return
        if loop.time() - said > 1.0 and (telling is None or telling.done()):
            said = loop.time()  # a key that is typed does not wait for the telling
            telling = asyncio.create_task(_say_active(state, session))
        data = message.get("bytes")
        await program.send(data if data is not None else message["text"])


async def _say_active(state: AppState, session: Session) -> None:
    with suppress(EaselError, OSError):
        await state.exec_client.say_active(session.running)


async def _from_program(browser: WebSocket, program: ClientConnection) -> None:
    async for message in program:
        if isinstance(message, str):
            await browser.send_text(message)
        else:
            await browser.send_bytes(message)


def _session(state: AppState, caller: Caller, job: str) -> Session:
    with state.store.read() as tx:
        return open_session(tx, caller, job)
