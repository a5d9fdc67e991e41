"""Connections that send half a request and then nothing are closed: each would otherwise hold a socket for ever."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEADERS_WITHIN_S = 15.0
"""How long the first line and the headers may take."""
BODY_PAUSE_S = 30.0
"""How long a body may pause."""

_Base: Any = AutoHTTPProtocol


class ImpatientProtocol(_Base):  # type: ignore[misc]
    """uvicorn's own protocol, with a limit on the time that headers may take to come."""

    within_s = HEADERS_WITHIN_S
    _alarm: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._wind()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            self._unwind()
        elif self._alarm is None:  # half of the next request on a connection that is kept
            self._wind()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwind()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._unwind()

    def _wind(self) -> None:
        self._unwind()
        self._alarm = asyncio.get_running_loop().call_later(self.within_s, self._close)

    def _unwind(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _close(self) -> None:
        self._alarm = None
        if not self.transport.is_closing():
            self.transport.close()
