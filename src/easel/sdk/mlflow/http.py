"""HTTP to a tracking server: who calls, which requests are sent again, and what refusals mean."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

import httpx

from easel.clock import Clock, SystemClock
from easel.errors import Denied, EaselError, InvalidInput, NotFound, TryLater, Unauthenticated
from easel.sdk.plain_http import is_untrusted, tls_context, unreachable

_AGAIN = frozenset({429, 502, 503, 504})
_REFUSALS = {401: Unauthenticated, 403: Denied, 404: NotFound}
_PORTS = {"http": 80, "https": 443}
_OURS = "easel_"
"""How tokens of Easel begin."""


class TrackingHttp:
    """One server. `address` is what MLFLOW_TRACKING_URI would be; credentials in it win over all others."""

    def __init__(
        self,
        address: str,
        token: str | None = None,
        *,
        attempts: int = 5,
        clock: Clock | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        parts = _split(address.rstrip("/"))
        if parts.scheme not in _PORTS or not parts.hostname:
            raise _no_address(_shown(parts))
        self.address = _shown(parts)
        self._client = httpx.Client(
            auth=credentials(parts, token, os.environ),
            timeout=120.0,
            transport=transport,
            verify=tls_context() if parts.scheme == "https" else True,
        )
        self._attempts, self._clock = attempts, clock or SystemClock()
        self._rng = random.Random()  # noqa: S311 - spreads retries

    def close(self) -> None:
        self._client.close()

    def send(self, verb: str, path: str, **more: Any) -> httpx.Response:
        return self._persist(lambda: self._client.request(verb, self.address + path, **more))

    def put(self, path: str, read: Callable[[], Iterable[bytes]]) -> None:
        """Send a body, from its beginning each time. What `read` raises is raised."""
        self._persist(lambda: self._client.put(self.address + path, content=iter(read())))

    def stream(self, path: str, params: Mapping[str, str] | None = None) -> Iterator[bytes]:
        """The bytes of an answer; one that breaks off is asked for again from there."""
        got = failures = 0
        while True:
            try:
                for chunk in self._rest(path, params, got):
                    got += len(chunk)
                    failures = 0
                    yield chunk
            except httpx.RequestError as error:
                failures += 1
                self._give_up_or_wait(error, failures)
            else:
                return

    def _rest(self, path: str, params: Mapping[str, str] | None, start: int) -> Iterator[bytes]:
        headers = {"Accept-Encoding": "identity"}
        if start:
            headers["Range"] = f"bytes={start}-"
        with self._client.stream("GET", self.address + path, params=params, headers=headers) as answer:
            if answer.status_code == 416 and start:  # nothing is left
                return
            if answer.status_code in _AGAIN:
                raise httpx.TransportError(f"it answered {answer.status_code}")
            if answer.status_code >= 400:
                answer.read()
                _checked(answer)
            skipped = start if answer.status_code != 206 else 0
            for chunk in answer.iter_bytes():
                if skipped < len(chunk):
                    yield chunk[skipped:]
                skipped = max(0, skipped - len(chunk))

    def _persist(self, ask: Callable[[], httpx.Response]) -> httpx.Response:
        failures = 0
        while True:
            try:
                answer = ask()
            except httpx.RequestError as error:
                failures += 1
                self._give_up_or_wait(error, failures)
                continue
            failures += 1
            if answer.status_code not in _AGAIN or failures == self._attempts:
                return _checked(answer)
            self._wait(failures)

    def _give_up_or_wait(self, error: httpx.RequestError, failures: int) -> None:
        """Waits for the next try, or raises: no certificate becomes a better one by waiting."""
        if is_untrusted(error) or failures >= self._attempts:
            raise unreachable(self.address, error) from error
        self._wait(failures)

    def _wait(self, failures: int) -> None:
        self._clock.sleep(min(30.0, 0.25 * 2**failures) * (0.5 + self._rng.random()))


def credentials(
    parts: SplitResult, token: str | None, environment: Mapping[str, str]
) -> httpx.Auth | tuple[str, str] | None:
    """Returns what tells a server who calls: `token`, else what stands in its address, else MLflow's variables.

    MLflow's variables are for the server of MLFLOW_TRACKING_URI and for no other. Without it they are for any, but a
    token of Easel is not: whoever set it once did not mean the server from which they import.
    """
    if token:
        return _Bearer(token)
    if parts.username is not None:
        return unquote(parts.username), unquote(parts.password or "")
    try:
        tracked = _split(environment.get("MLFLOW_TRACKING_URI", ""))
    except InvalidInput:  # of something else than a server, as databricks://scope:prefix
        return None
    is_named = _origin(tracked) == _origin(parts)
    if tracked.scheme in _PORTS and not is_named:
        return None
    user, password = (environment.get(f"MLFLOW_TRACKING_{name}", "") for name in ("USERNAME", "PASSWORD"))
    kept = environment.get("MLFLOW_TRACKING_TOKEN", "")
    if user and password and (is_named or not password.startswith(_OURS)):
        return user, password
    if kept and (is_named or not kept.startswith(_OURS)):
        return _Bearer(kept)
    return None


def same_server(one: str, other: str) -> bool:
    return _origin(_split(one)) == _origin(_split(other))


def _split(address: str) -> SplitResult:
    """The parts of an address whose port can be read."""
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError as error:
        raise _no_address(address.rpartition("@")[2]) from error
    return parts


def _no_address(shown: str) -> InvalidInput:
    return InvalidInput(f"{shown!r} is no address of an MLflow server: write http(s)://host[:port][/path]")


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


def _shown(parts: SplitResult) -> str:
    """The address without credentials."""
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


class _Bearer(httpx.Auth):
    def __init__(self, token: str) -> None:
        self._token = token

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response]:
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request


def _checked(answer: httpx.Response) -> httpx.Response:
    if answer.status_code < 400:
        return answer
    try:
        told = answer.json()
        said = f"{told.get('error_code', '')}: {told.get('message') or told.get('detail', '')}"
    except (ValueError, AttributeError):
        said = answer.text[:300]
    kind = TryLater if answer.status_code in _AGAIN else _REFUSALS.get(answer.status_code, EaselError)
    raise kind(f"{answer.request.url.copy_with(query=None)} answered {answer.status_code} {said}")
