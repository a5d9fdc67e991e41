"""A small reverse proxy, as an installation of two servers has one: requests go to those whose `/readyz` says yes.

One connection a request, and no request is sent twice: what a server cuts off, the client sees cut off.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import threading
from collections.abc import AsyncIterator, Iterator, Sequence

from uvicorn.loops.auto import auto_loop_factory

_HEAD_BYTES = 65_536
_CHECK_EVERY_S = 0.1
_NOBODY = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_CONNECTION = re.compile(rb"\r\nconnection:[^\r]*", re.IGNORECASE)


class ReverseProxy:
    """Listens on `port` of this machine, in a thread, between `start` and `stop`."""

    def __init__(self, backends: Sequence[int]) -> None:
        self.backends = list(backends)
        self.ready: list[int] = []
        """Ports of the servers that last said yes."""
        self.port = 0
        self._turn = itertools.count()
        self._started = threading.Event()
        self._loop = (
            auto_loop_factory()()
        )  # its own is lighter, and it shares the machine with what it leads to
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._thread.start()
        self._started.wait()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(10)

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        handling: set[asyncio.Task[None]] = set()  # the loop itself holds tasks only weakly

        def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(self._handle(reader, writer))
            handling.add(task)
            task.add_done_callback(handling.discard)

        server = await asyncio.start_server(take, "127.0.0.1", 0, limit=_HEAD_BYTES, backlog=512)
        self.port = server.sockets[0].getsockname()[1]
        watching = asyncio.create_task(self._watch())
        self._started.set()
        await self._stopping.wait()
        watching.cancel()
        server.close()
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

    async def _watch(self) -> None:
        while True:
            found = await asyncio.gather(*map(_says_ready, self.backends))
            self.ready = [port for port, ready in zip(self.backends, found, strict=True) if ready]
            await asyncio.sleep(_CHECK_EVERY_S)

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with _closing(writer):
                head = await reader.readuntil(b"\r\n\r\n")
                if b"\r\nupgrade:" not in head.lower():
                    head = _CONNECTION.sub(b"", head[:-4]) + b"\r\nConnection: close\r\n\r\n"
                upstream = await self._connect()
                if upstream is None:
                    writer.write(_NOBODY)
                    return
                async with _closing(upstream[1]):
                    upstream[1].write(head)
                    sending = asyncio.create_task(_pump(reader, upstream[1]))
                    try:
                        await _pump(upstream[0], writer)
                    finally:
                        sending.cancel()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """Opens a connection to the next ready server, or to another where that one does not take it."""
        ready = self.ready
        start = next(self._turn)
        for offset in range(len(ready)):
            with contextlib.suppress(OSError):
                return await asyncio.open_connection("127.0.0.1", ready[(start + offset) % len(ready)])
        return None


@contextlib.asynccontextmanager
async def _closing(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    try:
        yield
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()


async def _says_ready(port: int) -> bool:
    try:
        async with asyncio.timeout(5):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            async with _closing(writer):
                writer.write(b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                first = await reader.readline()
    except (OSError, TimeoutError):
        return False
    return first.startswith(b"HTTP/1.1 200")


@contextlib.contextmanager
def proxying(backends: Sequence[int]) -> Iterator[ReverseProxy]:
    proxy = ReverseProxy(backends)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()
