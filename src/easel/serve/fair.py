"""Requests queue fairly by user, so that one member who sends a thousand at once waits for themselves.

So many requests run at a time; when more come, they wait, each user in a line of their own, and the lines take turns.
All of them share one interpreter, so what runs already slows what comes: while others are there, a user has only a few
requests that are being worked on. One that takes long waits for something else than the processor, or is an exception:
it counts as one that runs, and no longer as one that is worked on. So does one whose answer has begun.

A user is a person, whatever tokens they show; what nobody has found right yet counts for its address (`known_users`).
Streams and websockets stay open for hours and are only counted; for them an unknown secret is looked up first. Bytes
of files and reports of workers pass by: they have limits of their own.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from anyio import to_thread
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from easel.errors import QuotaExhausted
from easel.serve.known_users import KnownUsers, address_of
from easel.serve.problems import of_error

_ALWAYS = ("/healthz", "/readyz", "/metrics")
_QUESTION = "/infer"
"""How paths end that ask a model: another process answers, and the more ask at once, the better it does."""


@dataclass(frozen=True, slots=True)
class UserLimits:
    """`at_once` run at a time, at most half of them one user's; each may have `waiting` more and `streams` open."""

    at_once: int = 16
    waiting: int = 500
    streams: int = 64

    short_s: float = 0.5
    """A request that takes longer is no longer counted among those that are worked on."""
    others_for_s: float = 5.0
    """How long after their last request somebody is still there."""

    @property
    def of_one(self) -> int:
        """Answers that somebody reads slowly must not take all the places."""
        return max(1, self.at_once // 2)

    @property
    def beside_others(self) -> int:
        """How many requests of one user are worked on at a time while others are there."""
        return max(1, self.at_once // 8)


@dataclass(slots=True)
class Turns:
    """Who runs and who waits. Only the event loop's own thread calls it. `now` is in seconds."""

    limits: UserLimits
    now: Callable[[], float] = time.monotonic
    running: dict[str, int] = field(default_factory=dict)
    working: dict[str, int] = field(default_factory=dict)
    """Those that run and are worked on."""
    lines: dict[str, deque[asyncio.Future[None]]] = field(default_factory=dict)
    streams: dict[str, int] = field(default_factory=dict)
    _there: OrderedDict[str, float] = field(default_factory=OrderedDict)
    """When somebody's last request came, the latest last."""

    async def enter(self, user: str) -> None:
        """Waits for the user's turn; then the request runs and is worked on."""
        self._note(user)
        if user not in self.lines and self._has_place(user):
            self._begin(user)
            return
        line = self.lines.setdefault(user, deque())
        if len(line) >= self.limits.waiting:
            raise QuotaExhausted(
                f"{len(line)} of your requests are waiting already: wait for their answers", retry_after=1
            )
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.pause(user)  # it was ours already
                self.leave(user)
            elif user in self.lines and turn in self.lines[user]:
                self.lines[user].remove(turn)
                if not self.lines[user]:
                    del self.lines[user]
            raise

    def pause(self, user: str) -> None:
        """A request of the user runs on, and is no longer worked on. The next one's turn."""
        _less(self.working, user)
        self._call_next()

    def leave(self, user: str) -> None:
        """A paused request of the user is over. The next one's turn."""
        _less(self.running, user)
        self._call_next()

    def _call_next(self) -> None:
        """Lets everybody begin for whom there is a place; whoever was served goes to the end of the round."""
        while ready := next((each for each in self.lines if self._has_place(each)), None):
            line = self.lines.pop(ready)
            turn = line.popleft()
            if line:
                self.lines[ready] = line
            if not turn.done():
                self._begin(ready)
                turn.set_result(None)

    def _has_place(self, user: str) -> bool:
        if sum(self.running.values()) >= self.limits.at_once:
            return False
        if self.running.get(user, 0) >= self.limits.of_one:
            return False
        return self.working.get(user, 0) < self.limits.beside_others or self._is_alone(user)

    def _note(self, user: str) -> None:
        """Notes that the user is there, and forgets who left."""
        now = self.now()
        self._there[user] = now
        self._there.move_to_end(user)
        while next(iter(self._there.values())) < now - self.limits.others_for_s:
            self._there.popitem(last=False)

    def _is_alone(self, user: str) -> bool:
        """Whether nobody else asked for anything lately."""
        since = self.now() - self.limits.others_for_s
        return all(at < since or one == user for one, at in self._there.items())

    def _begin(self, user: str) -> None:
        self.running[user] = self.running.get(user, 0) + 1
        self.working[user] = self.working.get(user, 0) + 1

    def open_stream(self, user: str) -> None:
        count = self.streams.get(user, 0)
        if count >= self.limits.streams:
            raise QuotaExhausted(f"you have {count} live streams open: close some of them", retry_after=5)
        self.streams[user] = count + 1

    def close_stream(self, user: str) -> None:
        _less(self.streams, user)


def _less(counts: dict[str, int], user: str) -> None:
    counts[user] -= 1
    if not counts[user]:
        del counts[user]


class FairMiddleware:
    """Pure ASGI. `apart` are path prefixes that pass by; `look_up` finds out whose an unknown secret is."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        limits: UserLimits,
        apart: tuple[str, ...],
        known: KnownUsers,
        look_up: Callable[[HTTPConnection], str | None],
    ) -> None:
        self.app, self.turns, self._apart = app, Turns(limits), (*apart, *_ALWAYS)
        self._known, self._look_up = known, look_up

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or scope["path"].startswith(self._apart):
            await self.app(scope, receive, send)
            return
        if scope["type"] == "websocket":
            await self._stay(scope, receive, send)
            return
        # All of the body first: one that comes slowly must not hold a place meanwhile.
        receive = _replayed(await _whole_body(receive), receive)
        if scope["path"].endswith("/stream"):
            await self._stay(scope, receive, send)
            return
        user = self._known.of(scope) or address_of(scope)
        try:
            await self.turns.enter(user)
        except QuotaExhausted as error:
            await of_error(error, scope["path"])(scope, receive, send)
            return
        await self._run(user, scope, receive, send)

    async def _stay(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A stream or a websocket: counted for as long as it is open."""
        try:
            user = self._known.of(scope) or await self._whose(scope)
            self.turns.open_stream(user)
        except QuotaExhausted as error:
            await _refuse(error, scope, receive, send)
            return
        try:
            await self.app(scope, receive, send)
        finally:
            self.turns.close_stream(user)

    async def _whose(self, scope: Scope) -> str:
        """Whose a secret is that was not seen before, looked up in the line of its address."""
        address = address_of(scope)
        await self.turns.enter(address)
        try:
            connection = HTTPConnection(scope)
            user = await to_thread.run_sync(self._look_up, connection)
            if user is not None:
                self._known.remember(connection, user)
            return user or address
        finally:
            self.turns.pause(address)
            self.turns.leave(address)

    async def _run(self, user: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Runs a request that was let in, and tells when it is no longer worked on."""
        is_working = True

        def pause() -> None:
            nonlocal is_working
            if is_working:
                is_working = False
                self.turns.pause(user)

        async def answer(message: Message) -> None:
            pause()
            await send(message)

        later = asyncio.get_running_loop().call_later(self.turns.limits.short_s, pause)
        if scope["path"].endswith(_QUESTION):
            pause()
        try:
            await self.app(scope, receive, answer)
        finally:
            later.cancel()
            pause()
            self.turns.leave(user)


async def _whole_body(receive: Receive) -> list[Message]:
    """The messages of a request's body; how large it may be is limited around us."""
    messages = [await receive()]
    while messages[-1]["type"] == "http.request" and messages[-1].get("more_body", False):
        messages.append(await receive())
    return messages


def _replayed(messages: list[Message], receive: Receive) -> Receive:
    left = deque(messages)

    async def again() -> Message:
        return left.popleft() if left else await receive()

    return again


async def _refuse(error: QuotaExhausted, scope: Scope, receive: Receive, send: Send) -> None:
    answer = of_error(error, scope["path"])
    if scope["type"] == "http":
        await answer(scope, receive, send)
    elif "websocket.http.response" in scope.get("extensions", {}):
        await receive()  # the wish to connect
        start = {"type": "websocket.http.response.start", "status": answer.status_code}
        await send({**start, "headers": answer.raw_headers})
        await send({"type": "websocket.http.response.body", "body": answer.body})
    else:
        await receive()
        await send({"type": "websocket.close", "code": 1013, "reason": error.message[:100]})
