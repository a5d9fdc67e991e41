"""HTTP to the server: retries of what is safe to retry, and errors that mirror the server's."""

from __future__ import annotations

import json
import random
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from easel import errors
from easel.clock import Clock, SystemClock
from easel.sdk.plain_http import (
    CONNECT_S,
    PlainHttp,
    Reply,
    TransportFailed,
    has_proxy,
    is_untrusted,
    tls_context,
    unreachable,
)
from easel.version import __version__
from easel.wire.model import BaseModel, Page, ValidationError

if TYPE_CHECKING:
    import httpx

M = TypeVar("M", bound=BaseModel)
R = TypeVar("R", "Reply", "httpx.Response")

STREAM_S = 60.0
"""How long a stream may be silent: the server sends a comment every 15 s."""

_ERRORS: dict[str, type[errors.EaselError]] = {
    kind.kind: kind
    for kind in (
        errors.InvalidInput,
        errors.Unauthenticated,
        errors.Denied,
        errors.NotFound,
        errors.Conflict,
        errors.QuotaExhausted,
        errors.TooLarge,
        errors.Misconfigured,
    )
}
_AWAY = frozenset({502, 503, 504})


def _worth_repeating(response: Reply | httpx.Response) -> bool:
    """Return whether the same request may work soon.

    A limit that waiting lifts (429) names the seconds; a spent budget or quota does not, and is told at once.
    """
    return response.status_code in _AWAY or (
        response.status_code == 429 and "Retry-After" in response.headers
    )


class Connection:
    """One server, one token. Every create carries an idempotency key, so every request may be repeated."""

    def __init__(
        self,
        server: str,
        token: str,
        *,
        timeout: float = 30.0,
        attempts: int = 6,
        clock: Clock | None = None,
    ) -> None:
        self.server = server
        self.authorization = f"Bearer {token}"
        self._attempts = attempts
        self._timeout = timeout
        self._clock = clock or SystemClock()
        self._rng = random.Random()  # noqa: S311 - spreads retries, guards nothing
        self._plain = None if has_proxy() else PlainHttp(server, self._headers, timeout)

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": self.authorization, "User-Agent": f"easel/{__version__}"}

    @cached_property
    def http(self) -> httpx.Client:
        """The larger client, for what the plain one does not know: proxies, streams of bytes, other bodies."""
        import httpx

        return httpx.Client(
            base_url=self.server,
            timeout=httpx.Timeout(self._timeout, connect=CONNECT_S),
            headers=self._headers,
            verify=tls_context(),
        )

    def get(self, path: str, model: type[M], params: Mapping[str, Any] | None = None) -> M:
        return model.model_validate_json(self.request("GET", path, params=_given(params)).content)

    def pages(self, path: str, model: type[M], params: Mapping[str, Any] | None = None) -> Iterator[M]:
        """Every item of a collection, page after page."""
        cursor: str | None = None
        while True:
            asked = _given({"limit": 200, **(params or {}), "cursor": cursor})
            page = Page[model].model_validate_json(  # type: ignore[valid-type]
                self.request("GET", path, params=asked).content
            )
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def post(
        self, path: str, body: BaseModel | Mapping[str, Any], model: type[M], key: str | None = None
    ) -> M:
        headers = {"Idempotency-Key": key or secrets.token_hex(16)}
        return model.model_validate_json(
            self.request("POST", path, json=_json(body), headers=headers).content
        )

    def put(self, path: str, body: BaseModel | Mapping[str, Any], model: type[M]) -> M:
        return model.model_validate_json(self.request("PUT", path, json=_json(body)).content)

    def patch(self, path: str, body: BaseModel | Mapping[str, Any], model: type[M]) -> M:
        return model.model_validate_json(self.request("PATCH", path, json=_json(body)).content)

    def delete(self, path: str) -> None:
        self.request("DELETE", path)

    def request(self, method: str, path: str, **more: Any) -> Reply | httpx.Response:
        """Send, and send again after a pause when the server is away or busy."""
        if ".." in path.split("/"):
            raise errors.InvalidInput(f"{path!r} would lead elsewhere: names and ids have no '..' in them")
        plain = self._plain
        if plain is not None and more.keys() <= {"json", "params", "headers"}:
            return self._persist(lambda: plain.request(method, path, **more))
        return self._persist(lambda: self._ask_http(method, path, **more))

    def _ask_http(self, method: str, path: str, **more: Any) -> httpx.Response:
        from httpx import TransportError

        try:
            return self.http.request(method, path, **more)
        except TransportError as error:
            raise TransportFailed(error) from error

    def download(self, path: str) -> Iterator[bytes]:
        """The bytes of an answer as they come; an answer that breaks off is an error."""
        from httpx import TransportError

        try:
            with self.http.stream("GET", path) as response:
                if response.is_error:
                    response.read()
                    raise to_error(response)
                yield from response.iter_bytes()
        except TransportError as error:
            raise self._unreachable(error) from error

    def events(self, path: str, after: int = 0) -> Iterator[dict[str, Any]]:
        """A stream of server-sent events that resumes where it broke off; ends only with an error."""
        last = after
        failures = 0
        while True:
            try:
                with self._stream(path, last) as lines:
                    for event_id, data in lines:
                        failures = 0
                        last = event_id
                        yield data
            except TransportFailed as error:
                failures += 1
                if failures >= self._attempts or is_untrusted(error.cause):
                    raise self._unreachable(error.cause) from error
            self._clock.sleep(self._pause(failures, None))

    @contextmanager
    def _stream(self, path: str, last: int) -> Iterator[Iterator[tuple[int, dict[str, Any]]]]:
        headers = {"Last-Event-ID": str(last), "Accept": "text/event-stream"}
        if self._plain is not None:
            with self._plain.lines(path, headers, STREAM_S) as lines:
                if isinstance(lines, Reply):
                    raise to_error(lines)
                yield _parse_stream(lines)
            return
        from httpx import Timeout, TransportError

        try:
            timeout = Timeout(STREAM_S, connect=CONNECT_S)
            with self.http.stream("GET", path, headers=headers, timeout=timeout) as response:
                if response.is_error:
                    response.read()
                    raise to_error(response)
                yield _parse_stream(response.iter_lines())
        except TransportError as error:
            raise TransportFailed(error) from error

    def _persist(self, send: Callable[[], R]) -> R:
        for attempt in range(1, self._attempts + 1):
            try:
                response = send()
            except TransportFailed as error:
                if attempt == self._attempts or is_untrusted(error.cause):
                    raise self._unreachable(error.cause) from error
                self._clock.sleep(self._pause(attempt, None))
                continue
            if _worth_repeating(response) and attempt < self._attempts:
                self._clock.sleep(self._pause(attempt, response.headers.get("Retry-After")))
                continue
            if response.is_error:
                raise to_error(response)
            return response
        raise AssertionError("the last attempt returns or raises")

    def pause(self, attempt: int) -> None:
        """Wait as long as is due after `attempt` failures."""
        self._clock.sleep(self._pause(attempt, None))

    def _pause(self, attempt: int, retry_after: str | None) -> float:
        """Half a second, doubling, with jitter; at least what the server asked for, at most half a minute."""
        backoff = min(30.0, 0.25 * 2**attempt) * self._rng.uniform(0.5, 1.0)
        is_number = retry_after is not None and retry_after.isascii() and retry_after.isdigit()
        asked = float(retry_after or 0) if is_number else 0.0
        return float(min(30.0, max(backoff, asked)))

    def _unreachable(self, error: Exception) -> errors.EaselError:
        return unreachable(self.server, error)

    def close(self) -> None:
        if self._plain is not None:
            self._plain.close()
        if "http" in self.__dict__:
            self.http.close()


def ask(model: type[M], **values: Any) -> M:
    """A request to send; what the server would refuse is refused here already, in the same words."""
    try:
        return model(**values)
    except ValidationError as error:
        told = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise errors.InvalidInput(told) from None


def to_error(response: Reply | httpx.Response) -> errors.EaselError:
    """The server's own error, as the same class here."""
    try:
        problem = response.json()
        kind, detail = str(problem["kind"]), str(problem["detail"])
    except (ValueError, KeyError, TypeError):
        kind, detail = (
            "error",
            f"the server answered {response.status_code}; is this address an Easel server?",
        )
    return errors.TryLater(detail) if response.status_code == 503 else error_of(kind, detail)


def error_of(kind: str, detail: str) -> errors.EaselError:
    if kind == errors.TryLater.kind:
        return errors.TryLater(detail)
    # Finer kinds of wrong input (a program, an example) ask for the same remedy.
    usual = errors.InvalidInput if kind.startswith("invalid-") else errors.EaselError
    return _ERRORS.get(kind, usual)(detail)


def _parse_stream(lines: Iterator[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    event_id, data = 0, ""
    for line in lines:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "id":
            event_id = int(value)
        elif name == "data" and line:
            data += value
        elif not line and data:
            yield event_id, json.loads(data)
            data = ""


_SAYS_WHICH = ("kind", "type")
"""Fields that say which of several things a value is: a server needs them also where a client may leave them out."""


def sent(body: BaseModel) -> dict[str, Any]:
    """Returns what is sent of a request: nothing that is as it would be anyway, which a server of an earlier release
    may not know."""
    return _said(body, body.model_dump(mode="json"))


def _said(body: BaseModel, dumped: dict[str, Any]) -> dict[str, Any]:
    for name, about in type(body).model_fields.items():
        value, make = getattr(body, name), about.default_factory
        default = make() if make is not None else about.default  # type: ignore[call-arg]
        if value == default and name not in _SAYS_WHICH:
            dumped.pop(name, None)
        elif isinstance(value, BaseModel):
            _said(value, dumped[name])
        elif isinstance(value, list | tuple):
            for each, inner in zip(value, dumped[name], strict=True):
                if isinstance(each, BaseModel):
                    _said(each, inner)
    return dumped


def _json(body: BaseModel | Mapping[str, Any]) -> Any:
    return sent(body) if isinstance(body, BaseModel) else dict(body)


def _given(params: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (params or {}).items() if value is not None}
