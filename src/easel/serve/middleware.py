"""What surrounds every request: its id, the size limit, headers, one log line and its measurements."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from easel import traces
from easel.declare.unicode import check_unicode
from easel.errors import InvalidInput, TooLarge
from easel.flow.audit.log import AuditLog
from easel.serve.audit import begin_note, entry_of, is_audited
from easel.serve.logs import REQUESTS, request_id
from easel.serve.metrics import Metrics
from easel.serve.patience import BODY_PAUSE_S
from easel.serve.problems import document, of_error
from easel.store.noting import RequestNote, noted

_log = logging.getLogger(REQUESTS)
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
# Ids must differ, not be secret: asking the system for randomness would hand the interpreter to another thread.
_ids = random.Random()  # noqa: S311
_HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]
_PAGE_POLICY = (
    "default-src 'self'; connect-src {connect}; img-src 'self' data: blob:; style-src 'self'; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


def page_policy(others: Sequence[str] = ()) -> bytes:
    """Returns the policy: no inline script or style, no frames; only this server and `others` are asked."""
    return _PAGE_POLICY.format(connect=" ".join(["'self'", *others])).encode()


class RequestMiddleware:
    """Pure ASGI, because it is paid on every request. `unlimited` are path prefixes that stream files, and
    `streamed` tells such addresses that have no fixed prefix."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        metrics: Metrics,
        max_body: int,
        unlimited: tuple[str, ...],
        streamed: re.Pattern[str] | None = None,
        policy: bytes | None = None,
        audit: AuditLog | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._audit, self._now = audit, now
        self.app, self._metrics, self._max_body, self._unlimited = app, metrics, max_body, unlimited
        self._policy = policy or page_policy()
        self._streamed = streamed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        headers = dict(scope["headers"])
        given = headers.get(b"x-request-id", b"")
        current = given.decode() if _REQUEST_ID.fullmatch(given) else f"{_ids.getrandbits(64):016x}"
        scope["easel.request_id"] = current
        marker = request_id.set(current)
        note = begin_note(scope, current)
        note_marker = noted.set(note)
        status = 500
        sent = False
        is_json = b"json" in headers.get(b"content-type", b"json")
        limit = _BodyLimit(self._max_body, receive, is_json=is_json)

        async def answer(message: Message) -> None:
            nonlocal status, sent
            if (limit.exceeded or limit.refused) and not sent:
                return  # the framework's own answer to the cut body: ours follows
            if message["type"] == "http.response.start":
                status, sent = message["status"], True
                self._conclude(scope, note, status)
                message = {**message, "headers": _with_headers(message["headers"], current, self._policy)}
            await send(message)

        limited = not (
            scope["path"].startswith(self._unlimited)
            or (self._streamed is not None and self._streamed.match(scope["path"]) is not None)
        )
        try:
            if limited and _announced(headers) > self._max_body:
                raise _too_large(self._max_body)
            await self.app(scope, limit.receive if limited else receive, answer)
            if limit.exceeded and not sent:
                raise _too_large(self._max_body)
            if limit.refused and not sent:
                raise limit.refused
        except (TooLarge, InvalidInput) as error:
            limit.exceeded, limit.refused = False, None
            await of_error(error, scope["path"])(scope, receive, answer)
        except Exception:
            _log.exception("unhandled error", extra={"fields": {"path": scope["path"]}})
            if sent:
                raise
            detail = f"an unexpected error; tell the admin this request's id: {current}"
            await document(500, "unexpected", detail, scope["path"])(scope, receive, answer)
        finally:
            if not sent:
                self._conclude(scope, note, status)
            noted.reset(note_marker)
            if note.jobs and status < 400:
                self._trace(note, current, time.perf_counter() - started)
            seconds = time.perf_counter() - started
            route = getattr(scope.get("route"), "path", "none")
            self._metrics.observe(scope["method"], route, status, seconds)
            fields = {
                "method": scope["method"],
                "path": scope["path"],
                "status": status,
                "ms": round(seconds * 1000, 2),
            }
            _log.info("request", extra={"fields": fields})
            request_id.reset(marker)

    def _trace(self, note: RequestNote, request: str, seconds: float) -> None:
        """Notes the request as the first span of the jobs that it submitted."""
        now = self._now()
        told = {"http.route": note.route, "easel.request_id": request, "easel.user": note.actor_name or ""}
        for job in note.jobs:
            began = now - timedelta(seconds=seconds)
            traces.record(traces.SUBMIT, "easel-server", job, began, now, attributes=told)

    def _conclude(self, scope: Scope, note: RequestNote, status: int) -> None:
        """Hand the entry of an answered request over, before the answer leaves."""
        if self._audit is not None and is_audited(scope):
            self._audit.record(entry_of(scope, note, status, self._now()), note.key if note.kept else None)


class _BodyLimit:
    """A body without a truthful Content-Length is cut off where the limit is."""

    def __init__(self, most: int, receive: Receive, *, is_json: bool) -> None:
        self._most, self._receive, self._total = most, receive, 0
        self._checked, self._body = is_json, b""
        self.exceeded = False
        self.refused: InvalidInput | None = None
        self._waits = True

    async def receive(self) -> Message:
        try:
            async with asyncio.timeout(BODY_PAUSE_S if self._waits else None):
                message = await self._receive()
        except TimeoutError:
            self.refused = InvalidInput(
                f"nothing of the body came for {BODY_PAUSE_S:g} s: send the request again"
            )
            raise self.refused from None
        self._waits = bool(message.get("more_body", False))
        body = message.get("body", b"")
        self._total += len(body)
        if self._total > self._most:
            self.exceeded = True
            raise _too_large(self._most)
        if self._checked and body:
            self._body += body
        if self._body and not message.get("more_body", False) and _HALF_PAIR.search(self._body):
            self._check()
        return message

    def _check(self) -> None:
        """JSON may write half of a surrogate pair, which neither the database nor an answer can hold."""
        with suppress(ValueError, RecursionError):  # what is no JSON at all is refused elsewhere
            value = json.loads(self._body)
            self._body = b""
            try:
                check_unicode(value, "the request")
            except InvalidInput as error:
                self.refused = error
                raise


def _announced(headers: dict[bytes, bytes]) -> int:
    length = headers.get(b"content-length", b"0")
    return int(length) if length.isdigit() else 0


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"the request is larger than {limit} bytes: send less at once, or upload a file")


def _with_headers(
    headers: list[tuple[bytes, bytes]], current: str, policy: bytes
) -> list[tuple[bytes, bytes]]:
    present = {name.lower() for name, _ in headers}
    added = [pair for pair in _HEADERS if pair[0] not in present]
    if b"content-security-policy" not in present:
        added.append((b"content-security-policy", policy))
    return [*headers, *added, (b"x-request-id", current.encode())]
