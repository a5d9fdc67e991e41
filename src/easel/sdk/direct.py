"""Bytes by signed addresses, which are the server's or the blob store's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from easel.errors import TryLater
from easel.sdk.connection import Connection, to_error
from easel.sdk.plain_http import tls_context

if TYPE_CHECKING:
    import httpx

_CHUNK = 1 << 20
_TRIES = 5


class Direct:
    """PUT and GET of signed addresses, which may be the server's or the blob store's own."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @cached_property
    def _plain(self) -> httpx.Client:
        """Opens a client without the token: a signed address is the permission, and another host must not see it."""
        import httpx

        return httpx.Client(
            timeout=httpx.Timeout(120.0, connect=10.0), base_url=self._connection.server, verify=tls_context()
        )

    def put(self, url: str, size: int, body: Callable[[], Iterable[bytes]]) -> None:
        headers = {"Content-Length": str(size), "Content-Type": "application/octet-stream"}
        self._persist(lambda: self._plain.put(url, content=body(), headers=headers))

    def get(self, url: str, start: int, length: int, arrived: int = 0) -> Iterator[bytes]:
        """The bytes after the `arrived` first; a connection that breaks is taken up again where it broke.

        Our own server signs a range and lets any part of it be asked for. A bucket signs the very header, so there the
        whole range is asked for again and what has arrived already is passed over.
        """
        from httpx import ReadError, TransportError

        attempt = 0
        while arrived < length:
            skip = 0 if url.startswith("/") else arrived
            ranged = {"Range": f"bytes={start + arrived - skip}-{start + length - 1}"}
            try:
                with self._plain.stream("GET", url, headers=ranged) as response:
                    if response.status_code >= 500:
                        raise ReadError(f"answered {response.status_code}")
                    if response.is_error:
                        response.read()
                        raise to_error(response)
                    for chunk in response.iter_raw(_CHUNK):
                        fresh = chunk[skip:]
                        skip -= min(skip, len(chunk))
                        arrived += len(fresh)
                        if fresh:
                            yield fresh
                if arrived < length:
                    raise ReadError("ended too early")
            except TransportError as error:
                attempt += 1
                if attempt == _TRIES:
                    raise TryLater(f"the bytes stop coming ({type(error).__name__}): try again") from error
                self._connection.pause(attempt)

    def _persist(self, send: Callable[[], httpx.Response]) -> None:
        from httpx import TransportError

        for attempt in range(1, _TRIES + 1):
            try:
                response = send()
                if response.status_code < 500 or attempt == _TRIES:
                    if response.is_error:
                        raise to_error(response)
                    return
            except TransportError as error:
                if attempt == _TRIES:
                    raise TryLater(f"no answer ({type(error).__name__}): try again") from error
            self._connection.pause(attempt)

    def close(self) -> None:
        if "_plain" in self.__dict__:
            self._plain.close()
