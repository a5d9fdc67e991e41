"""People who come in to a job on this machine: the worker connects to the job's socket and to the server, and carries.

serve/worker_visits.py is the other end; an empty message says that a side has said everything.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from pathlib import Path

from easel.errors import EaselError
from easel.records.attempt import AttemptKey
from easel.run.exec_socket import dial
from easel.run.remote.depot import ROOT, Link
from easel.sdk.websocket import BINARY, TEXT, WebSocket

log = logging.getLogger("easel.worker")
READY = b"ready"
_PIECE = 1 << 16
_AT_ONCE = 64


class VisitCarrier:
    """`attempts` is the folder of this machine's attempts. Each visit has a thread and a connection of its own."""

    def __init__(self, link: Link, attempts: Path) -> None:
        self._link, self._attempts = link, attempts
        self._room = threading.BoundedSemaphore(_AT_ONCE)

    def begin(self, visit: str, key: str) -> None:
        """Carry a visit in a thread of its own; beyond the most at once it is left, and its visitor is told."""
        if not self._room.acquire(blocking=False):
            log.warning("a visit to %s is left out: %d are here already", key, _AT_ONCE)
            return
        threading.Thread(target=self._carry, args=(visit, key), name=f"visit-{key}", daemon=True).start()

    def _carry(self, visit: str, key: str) -> None:
        try:
            server = self._connect(visit, key)
            try:
                self._both_ways(server, key)
            finally:
                server.close()
        except (EaselError, OSError) as error:
            log.warning("a visit to %s failed: %s", key, error)
        finally:
            self._room.release()

    def _connect(self, visit: str, key: str) -> WebSocket:
        address = f"{self._link.server.rstrip('/')}{ROOT}/attempts/{AttemptKey.parse(key)}/visits/{visit}"
        return WebSocket(address, {"Authorization": f"Bearer {self._link.token}"})

    def _both_ways(self, server: WebSocket, key: str) -> None:
        try:
            job = dial(self._attempts, key)
        except OSError:
            server.send(b"it just began or ended", TEXT)
            return
        with job:
            server.send(READY, TEXT)
            back = threading.Thread(target=_to_server, args=(job, server), daemon=True)
            back.start()
            with contextlib.suppress(OSError):
                while (found := server.receive()) is not None:
                    kind, piece = found
                    if kind == BINARY and not piece:
                        job.shutdown(socket.SHUT_WR)
                    elif kind == BINARY:
                        job.sendall(piece)
            with contextlib.suppress(OSError):
                job.shutdown(socket.SHUT_RDWR)  # wakes the other thread
            back.join()


def _to_server(job: socket.socket, server: WebSocket) -> None:
    with contextlib.suppress(OSError):
        while piece := job.recv(_PIECE):
            server.send(piece)
        server.send(b"")
