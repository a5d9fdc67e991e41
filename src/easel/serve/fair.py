"""Requests queue fairly by user, so that one member who sends a thousand at once waits for themselves.

So many requests run at a time; when more come, they wait, each user in a line of their own, and the lines take turns.
Streams stay open for hours and are only counted. Bytes of files and reports of workers pass by: they have limits of
their own.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from easel.errors import QuotaExhausted
from easel.serve.access import SESSION_COOKIE
from easel.serve.problems import of_error

_ALWAYS = ("/healthz", "/readyz", "/metrics")


@dataclass(frozen=True, slots=True)
class UserLimits:
    """`at_once` run at a time, at most half of them one user's; each may have `waiting` more and `streams` open."""

    at_once: int = 16
    waiting: int = 500
    streams: int = 64

    @property
    def of_one(self) -> int:
        """Answers that somebody reads slowly must not take all the places."""
        return max(1, self.at_once // 2)


@dataclass(slots=True)
class Turns:
    """Who runs and who waits. Only the event loop's own thread calls it."""

    limits: UserLimits
    running: dict[str, int] = field(default_factory=dict)
    lines: dict[str, deque[asyncio.Future[None]]] = field(default_factory=dict)
    streams: dict[str, int] = field(default_factory=dict)

    async def enter(self, user: str) -> None:
        if self._has_place(user) and user not in self.lines:
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
                self.leave(user)  # it was ours already
            elif user in self.lines and turn in self.lines[user]:
                self.lines[user].remove(turn)
                if not self.lines[user]:
                    del self.lines[user]
            raise

    def leave(self, user: str) -> None:
        """The next user's turn; whoever was served goes to the end of the round."""
        self.running[user] -= 1
        if not self.running[user]:
            del self.running[user]
        while ready := next((each for each in self.lines if self._has_place(each)), None):
            line = self.lines.pop(ready)
            turn = line.popleft()
            if line:
                self.lines[ready] = line
            if not turn.done():
                self._begin(ready)
                turn.set_result(None)

    def _has_place(self, user: str) -> bool:
        total = sum(self.running.values())
        return total < self.limits.at_once and self.running.get(user, 0) < self.limits.of_one

    def _begin(self, user: str) -> None:
        self.running[user] = self.running.get(user, 0) + 1

    def open_stream(self, user: str) -> None:
        count = self.streams.get(user, 0)
        if count >= self.limits.streams:
            raise QuotaExhausted(f"you have {count} live streams open: close some of them", retry_after=5)
        self.streams[user] = count + 1

    def close_stream(self, user: str) -> None:
        left = self.streams[user] - 1
        if left:
            self.streams[user] = left
        else:
            del self.streams[user]


class FairMiddleware:
    """Pure ASGI. `apart` are path prefixes that pass by."""

    def __init__(self, app: ASGIApp, *, limits: UserLimits, apart: tuple[str, ...]) -> None:
        self.app, self.turns, self._apart = app, Turns(limits), (*apart, *_ALWAYS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(self._apart):
            await self.app(scope, receive, send)
            return
        user = user_of(dict(scope["headers"]), scope.get("client"))
        is_stream = scope["path"].endswith("/stream")
        # All of the body first: one that comes slowly must not hold a place meanwhile.
        receive = _replayed(await _whole_body(receive), receive)
        try:
            if is_stream:
                self.turns.open_stream(user)
            else:
                await self.turns.enter(user)
        except QuotaExhausted as error:
            await of_error(error, scope["path"])(scope, receive, send)
            return
        try:
            await self.app(scope, receive, send)
        finally:
            if is_stream:
                self.turns.close_stream(user)
            else:
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


def user_of(headers: Mapping[bytes, bytes], client: tuple[str, int] | None) -> str:
    """Whose request it is, before anybody looked it up: by its token or session, else by its address."""
    secret = headers.get(b"authorization", b"")
    if not secret and b"cookie" in headers:
        try:
            cookie = SimpleCookie(headers[b"cookie"].decode("latin-1")).get(SESSION_COOKIE)
            secret = cookie.value.encode() if cookie else b""
        except CookieError:
            secret = b""
    if secret:
        return hashlib.blake2b(secret, digest_size=16).hexdigest()
    return client[0] if client else "unknown"
