"""PostgreSQL tells other processes that something was committed: LISTEN in a thread of its own.

Nobody depends on it: whoever listens also looks from time to time, so a lost message costs a moment.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from easel.clock import Clock

if TYPE_CHECKING:
    import psycopg

log = logging.getLogger("easel.store")
CHANNEL = "easel_events"
_PATIENCE_S = 1.0


class Ear:
    """Calls `heard` after commits of other processes; `own` marks our own messages, which are passed over."""

    def __init__(self, url: str, own: str, heard: Callable[[], None], clock: Clock) -> None:
        self._url = url.replace("postgresql+psycopg:", "postgresql:", 1)
        self._own, self._heard, self._clock = own, heard, clock
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="listen", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        import psycopg  # only where PostgreSQL is used: the driver is an extra

        while not self._stopping.is_set():
            try:
                with psycopg.connect(self._url, autocommit=True, connect_timeout=3) as conn:
                    conn.execute(f"LISTEN {CHANNEL}")
                    self._heard()  # what was said while nobody listened
                    while not self._stopping.is_set():
                        if any(message.payload != self._own for message in self._messages(conn)):
                            self._heard()
            except psycopg.Error as error:
                log.warning("the database cannot be listened to, trying again: %s", error)
                self._stopping.wait(_PATIENCE_S)

    @staticmethod
    def _messages(conn: psycopg.Connection[Any]) -> list[psycopg.Notify]:
        return list(conn.notifies(timeout=_PATIENCE_S, stop_after=1))

    def close(self) -> None:
        self._stopping.set()
        self._thread.join(10)
