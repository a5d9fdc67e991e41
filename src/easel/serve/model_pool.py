"""The server's side of the model processes: which one is asked, what becomes of questions when one dies.

A process is started when it is first needed. When it dies, those who waited for it are asked again, one by one, so that
a question that kills a process is found and refused, and nobody else's is. One that does not answer in time is ended.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import subprocess
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from easel.errors import EaselError, InvalidInput, Misconfigured, TryLater
from easel.match.examples import ExampleError
from easel.run.trial_walls import NO_WALLS, can_wall_in
from easel.serve.model_forms import Unreadable
from easel.serve.model_process import ASKED, TOLD

log = logging.getLogger("easel.models")
_KINDS: dict[str, type[EaselError]] = {
    kind.kind: kind for kind in (InvalidInput, ExampleError, Unreadable, Misconfigured, TryLater)
}
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "HOME", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH")
_PASSED_ON_FAMILIES = ("OMP_", "OPENBLAS_", "MKL_", "CUDA_", "NVIDIA_", "PYTHON")
LOOK_EVERY_S = 1.0
STARTS_WITHIN_S = 120.0
"""What a fresh process may take for its first answer: it imports libraries and loads the model."""


class ProcessDied(Exception):
    """The process ended before it had answered."""


@dataclass(frozen=True, slots=True)
class PoolOptions:
    home: Path
    models: Path
    """The only folder of `home` that model processes may read."""
    processes: int
    memory_mb: int
    answer_limit_s: float
    unwalled: bool = False
    """Whether an admin has said that models may answer where no walls can be put up around them."""


class ModelPool:
    """All model processes of a server. Only the event loop's own thread calls it."""

    def __init__(self, options: PoolOptions) -> None:
        self.options = options
        self._lines = [ModelProcess(options, number) for number in range(options.processes)]

    async def ask(self, order: bytes, key: str, body: bytes) -> bytes:
        """The answer of the model that `order` names; `key` decides which process holds it."""
        line = self._lines[zlib.crc32(key.encode()) % len(self._lines)]
        return await line.ask(order, body)

    @property
    def pids(self) -> list[int]:
        """The processes that are running now."""
        return [line.pid for line in self._lines if line.pid is not None]

    def close(self) -> None:
        for line in self._lines:
            line.close()


class ModelProcess:
    """One process, started again whenever it is needed and not there."""

    def __init__(self, options: PoolOptions, number: int) -> None:
        self._options, self._number = options, number
        self._process: subprocess.Popen[bytes] | None = None
        self._wire: _Wire | None = None
        self._one_by_one: asyncio.Lock | None = None
        self._starting: asyncio.Lock | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    async def ask(self, order: bytes, body: bytes) -> bytes:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self.close()
            self._loop, self._one_by_one, self._starting = loop, asyncio.Lock(), asyncio.Lock()
        assert self._one_by_one is not None
        if self._one_by_one.locked():  # somebody's question ended the process: first find out whose
            async with self._one_by_one:
                pass
        try:
            return await (await self._connected()).ask(order, body)
        except ProcessDied:
            log.warning("model process %d died: those who waited for it are asked again", self._number)
        async with self._one_by_one:
            try:
                return await (await self._connected()).ask(order, body)
            except ProcessDied:
                raise TryLater(
                    "the process of this model ended twice while it answered: ask about less at once, or pin another "
                    "model (`easel apps pin`), and tell the admin, whose log says more",
                    retry_after=30,
                ) from None

    async def _connected(self) -> _Wire:
        if self._wire is not None and not self._wire.gone:
            return self._wire
        assert self._starting is not None
        async with self._starting:
            if self._wire is None or self._wire.gone:
                self._wire = await self._start()
        return self._wire

    async def _start(self) -> _Wire:
        self._end()
        if not self._options.unwalled and not can_wall_in():
            raise TryLater(f"no model answers here: {NO_WALLS}", retry_after=600)
        ours, theirs = socket.socketpair()
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        given = {
            name: value
            for name, value in os.environ.items()
            if name in _PASSED_ON or name.startswith(_PASSED_ON_FAMILIES)
        }
        options = self._options
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                [
                    sys.executable,
                    "-m",
                    "easel.serve.model_process",
                    str(theirs.fileno()),
                    str(options.home),
                    str(options.models),
                    str(options.memory_mb),
                ],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                env={"OMP_NUM_THREADS": "1", **given},
                cwd="/",
            )
        ours.setblocking(False)
        limit, process = options.answer_limit_s, self._process
        loop = asyncio.get_running_loop()
        _, wire = await loop.create_connection(lambda: _Wire(loop, limit, process), sock=ours)
        return wire

    def _end(self) -> None:
        if self._process is not None:
            if self._process.poll() is None:
                self._process.kill()
            self._process.wait()
            self._process = None

    def close(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = None
        self._end()


class _Wire(asyncio.Protocol):
    """The socket to one process: many questions on their way at once, each with its number."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, limit_s: float, process: subprocess.Popen[bytes]
    ) -> None:
        self._loop, self._limit_s, self._process = loop, limit_s, process
        self._transport: asyncio.Transport | None = None
        self._waiting: dict[int, tuple[float, asyncio.Future[bytes]]] = {}
        self._number = 0
        self._got = bytearray()
        self._watch: asyncio.TimerHandle | None = None
        self._has_answered = False
        self.gone = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        self.gone = True
        if self._watch is not None:
            self._watch.cancel()
        waiting, self._waiting = self._waiting, {}
        for _, future in waiting.values():
            if not future.done():
                future.set_exception(ProcessDied())

    async def ask(self, order: bytes, body: bytes) -> bytes:
        if self.gone or self._transport is None:
            raise ProcessDied
        self._number += 1
        number = self._number
        future: asyncio.Future[bytes] = self._loop.create_future()
        self._waiting[number] = (self._loop.time(), future)
        if self._watch is None:
            self._watch = self._loop.call_later(LOOK_EVERY_S, self._look)
        self._transport.write(ASKED.pack(len(order) + len(body), number, len(order)) + order + body)
        try:
            return await future
        finally:
            self._waiting.pop(number, None)

    def _look(self) -> None:
        """End a process whose oldest question waits too long: whoever asked it is told, others are asked again."""
        self._watch = None
        if not self._waiting or self.gone:
            return
        began, future = next(iter(self._waiting.values()))
        limit = self._limit_s if self._has_answered else max(self._limit_s, STARTS_WITHIN_S)
        if self._loop.time() - began > limit:
            if not future.done():
                future.set_exception(
                    TryLater(
                        f"the model did not answer within {limit:g} s (answer_limit_s): ask about less at once",
                        retry_after=10,
                    )
                )
            self._process.kill()
        self._watch = self._loop.call_later(LOOK_EVERY_S, self._look)

    def data_received(self, data: bytes) -> None:
        self._has_answered = True
        self._got += data
        at = 0
        while len(self._got) - at >= TOLD.size:
            length, number, refused = TOLD.unpack_from(self._got, at)
            end = at + TOLD.size + length
            if len(self._got) < end:
                break
            body = bytes(self._got[at + TOLD.size : end])
            at = end
            found = self._waiting.get(number)
            if found is None or found[1].done():
                continue
            if refused:
                found[1].set_exception(error_of(json.loads(body)))
            else:
                found[1].set_result(body)
        del self._got[:at]

    def close(self) -> None:
        if self._transport is not None and not self._loop.is_closed():
            self._transport.close()
        self.gone = True


def error_of(told: dict[str, Any]) -> EaselError:
    """The refusal of a model process as the error that it was there."""
    return _KINDS.get(told["kind"], TryLater)(told["message"], **told["details"])
