"""Batches the requests of workers: those that wait together are served in one transaction.

A request that finds nothing waits here, in no thread of its own, until something is offered or its time is up.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from easel.errors import EaselError, TryLater
from easel.flow.workers.exchange import ExchangeReply, Said, exchange
from easel.flow.workers.seal import Seal
from easel.store import offers
from easel.store.engine import Store

log = logging.getLogger("easel.exchange")
LOOK_S = 1.0
"""How often those who wait are looked at although nobody woke us."""
BATCH = 256


@dataclass(slots=True, eq=False)
class _WaitingRequest:
    said: Said
    wait_until: float
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[ExchangeReply] = field(repr=False)

    def answer(self, result: ExchangeReply | EaselError) -> None:
        self.loop.call_soon_threadsafe(self._settle, result)

    def _settle(self, result: ExchangeReply | EaselError) -> None:
        if self.done.done():
            return  # the worker hung up
        if isinstance(result, EaselError):
            self.done.set_exception(result)
        else:
            self.done.set_result(result)


class ExchangeBatcher:
    """One thread beside the server; it starts with the first request and stops with the server."""

    def __init__(self, store: Store, seal: Seal) -> None:
        self._store, self.seal = store, seal
        self._changed = threading.Event()
        self._lock = threading.Lock()
        self._new: list[_WaitingRequest] = []
        self._waiting: dict[str, _WaitingRequest] = {}
        self._called: set[str] = set()
        self._stopping = False
        self._thread: threading.Thread | None = None
        self.trusted: set[str] = set()
        """Hashes of secrets that the last exchange found valid: others are looked at before the body is."""

    async def request(self, said: Said, wait_s: float) -> ExchangeReply:
        loop = asyncio.get_running_loop()
        until = self._store.clock.monotonic() + wait_s
        request = _WaitingRequest(said, until, loop, loop.create_future())
        with self._lock:
            if self._stopping:
                raise TryLater("this server is stopping: ask again", retry_after=1.0)
            self._new.append(request)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="exchange-batcher", daemon=True)
                self._thread.start()
        self._changed.set()
        return await request.done

    def call(self, name: str) -> None:
        """Answers the request of this worker that waits here, so that it asks again; the next one, if none does."""
        with self._lock:
            self._called.add(name)
        self._changed.set()

    def _run(self) -> None:
        woken = threading.Event()

        def wake() -> None:
            woken.set()
            self._changed.set()

        stop_listening = self._store.listen(wake)
        look_at = self._store.clock.monotonic()
        try:
            while not self._stopping:
                self._changed.wait(LOOK_S)
                self._changed.clear()
                now = self._store.clock.monotonic()
                due = woken.is_set() or now >= look_at
                if due:
                    woken.clear()
                    look_at = now + LOOK_S
                self._turn(now, due)
        finally:
            stop_listening()
            self._send_all_away()

    def _turn(self, now: float, look: bool) -> None:
        with self._lock:
            new, self._new = self._new[:BATCH], self._new[BATCH:]
            if self._new:
                self._changed.set()
        for request in new:
            earlier = self._waiting.pop(request.said.name, None)
            if earlier is not None and request.wait_until > now:
                earlier.answer(
                    ExchangeReply(earlier.said.session)
                )  # its place at the desk is taken by the later one
            elif earlier is not None:
                self._waiting[request.said.name] = earlier
        self._serve(new, now)
        self._answer_called()
        over = [request for request in self._waiting.values() if request.wait_until <= now]
        for request in over:
            del self._waiting[request.said.name]
            request.answer(ExchangeReply(request.said.session))
        if look and self._waiting:
            self._serve_waiting(now)

    def _answer_called(self) -> None:
        with self._lock:
            called = [name for name in self._called if name in self._waiting]
            self._called.difference_update(called)
        for name in called:
            request = self._waiting.pop(name)
            request.answer(ExchangeReply(request.said.session))

    def _serve(self, requests: Sequence[_WaitingRequest], now: float) -> None:
        if not requests:
            return
        for request, result in zip(
            requests, self._exchange([request.said for request in requests]), strict=True
        ):
            if isinstance(result, ExchangeReply):
                self.trusted.add(request.said.secret_hash)
            elif not isinstance(result, TryLater):
                self.trusted.discard(request.said.secret_hash)
            busy = bool(request.said.entries or request.said.gone or request.said.session == 0)
            if isinstance(result, ExchangeReply) and result.empty and request.wait_until > now and not busy:
                self._waiting[request.said.name] = request
            else:
                request.answer(result)

    def _serve_waiting(self, now: float) -> None:
        waiting = list(self._waiting.values())
        try:
            with self._store.read() as tx:
                names = [request.said.name for request in waiting]
                executors = {request.said.executor for request in waiting}
                heard = {one.said.name: one.said.gave_way for one in waiting if one.said.gave_way is not None}
                if not offers.anything_for(tx, names, executors, heard):
                    return
        except EaselError:
            return  # looked at again in a moment
        asked = [replace(request.said, entries=(), gone={}, again=True) for request in waiting]
        for request, result in zip(waiting, self._exchange(asked), strict=True):
            if not (isinstance(result, ExchangeReply) and result.empty):
                del self._waiting[request.said.name]
                request.answer(result)

    def _exchange(self, said: Sequence[Said]) -> Sequence[ExchangeReply | EaselError]:
        try:
            return exchange(self._store, said, self.seal)
        except EaselError as error:
            return [error] * len(said)
        except Exception:  # one bad report must not stop everybody's
            log.exception("an exchange with workers failed")
            if len(said) > 1:
                return [answer for each in said for answer in self._exchange([each])]
            return [EaselError("this exchange could not be understood")]

    def _send_all_away(self) -> None:
        with self._lock:
            left = [*self._new, *self._waiting.values()]
            self._new.clear()
        for request in left:
            request.answer(TryLater("this server is stopping: ask again", retry_after=1.0))

    def close(self) -> None:
        with self._lock:
            self._stopping = True
            thread = self._thread
        self._changed.set()
        if thread is not None:
            thread.join(10)
