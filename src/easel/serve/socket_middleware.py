"""What surrounds every websocket: its id, and its entry in the audit when it is let in or refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from easel.flow.audit.log import AuditLog
from easel.serve.audit import begin_note, entry_of, is_audited
from easel.serve.logs import request_id
from easel.store.noting import noted

_ids = random.Random()  # noqa: S311
_ANSWERS = ("websocket.accept", "websocket.close", "websocket.http.response.start")
_LET_IN, _REFUSED, _BROKEN = 101, 403, 500


class SocketMiddleware:
    """Pure ASGI. The entry is written when the first answer leaves: a terminal may stay open for days."""

    def __init__(
        self, app: ASGIApp, *, audit: AuditLog, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self.app, self._audit, self._now = app, audit, now

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self.app(scope, receive, send)
            return
        current = f"{_ids.getrandbits(64):016x}"
        scope["easel.request_id"] = current
        marker = request_id.set(current)
        note = begin_note(scope, current)
        noted.set(note)

        def conclude(status: int) -> None:
            if noted.get() is not note:
                return
            noted.set(None)  # what follows is no longer this request's
            if is_audited(scope):
                told = note.status or status
                self._audit.record(entry_of(scope, note, told, self._now()), note.key if note.kept else None)

        async def answer(message: Message) -> None:
            if message["type"] in _ANSWERS:
                let_in = message["type"] == "websocket.accept"
                conclude(_LET_IN if let_in else message.get("status", _REFUSED))
            await send(message)

        try:
            await self.app(scope, receive, answer)
        finally:
            conclude(_BROKEN)
            request_id.reset(marker)
