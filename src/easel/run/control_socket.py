"""The worker's control socket, on which one controller at a time is heard, in lines of JSON."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import selectors
import socket
from pathlib import Path
from typing import Any

from easel.errors import Conflict

_CROWDED = 8 << 20
NAME = "worker.sock"


def address(folder: Path) -> tuple[str, int]:
    """A name for the socket that is short enough for the kernel in any folder; and what to close."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    return f"/proc/self/fd/{fd}/{NAME}", fd


class ControlSocket:
    """Non-blocking. A newcomer replaces whoever was connected: the fence decides who may give orders."""

    def __init__(self, folder: Path, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._lock = os.open(folder / "worker.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._lock)
            raise Conflict(
                f"a worker runs already in {folder}: stop it first, or choose another home"
            ) from error
        os.truncate(self._lock, 0)
        os.write(self._lock, f"{os.getpid()}\n".encode())
        self._path = folder / NAME
        self._path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX)
        name, fd = address(folder)
        self._listener.bind(name)
        os.close(fd)
        self._listener.listen(8)
        self._listener.setblocking(False)
        selector.register(self._listener, selectors.EVENT_READ, ("control", None))
        self._peer: socket.socket | None = None
        self._in = b""
        self._out = bytearray()
        self._messages: list[tuple[socket.socket, dict[str, Any]]] = []
        self.greeted = False
        """Whether the one who is connected has said how much it knows. Before that it is told nothing."""

    @property
    def open(self) -> bool:
        return self._peer is not None

    @property
    def crowded(self) -> bool:
        """Whether to fetch no more: nobody may be told, or the other side has too much to read."""
        return self._peer is None or not self.greeted or len(self._out) > _CROWDED

    def ready(self, key: selectors.SelectorKey, mask: int) -> None:
        if key.fileobj is self._listener:
            with contextlib.suppress(BlockingIOError):
                peer, _ = self._listener.accept()
                self._replace(peer)
            return
        if mask & selectors.EVENT_READ:
            self._read()
        if mask & selectors.EVENT_WRITE:
            self.flush()

    def _replace(self, peer: socket.socket | None) -> None:
        if self._peer is not None:
            if peer is not None:
                self._take()  # what the former one said before it left still counts
            self._selector.unregister(self._peer)
            self._peer.close()
        self._peer, self._in, self.greeted = peer, b"", False
        self._out.clear()
        if peer is not None:
            peer.setblocking(False)
            self._selector.register(peer, selectors.EVENT_READ, ("control", None))

    def _read(self) -> None:
        if not self._take():
            self._replace(None)

    def _take(self) -> bool:
        """Read what is there; False when the other side has closed."""
        assert self._peer is not None
        try:
            data = self._peer.recv(1 << 20)
        except BlockingIOError:
            return True
        except OSError:
            return False
        *lines, self._in = (self._in + data).split(b"\n")
        self._messages += [(self._peer, json.loads(line)) for line in lines if line]
        return bool(data)

    def messages(self) -> list[tuple[dict[str, Any], bool]]:
        """What was said since, and whether by the one who is connected now: another may have taken its place."""
        taken, self._messages = self._messages, []
        return [(message, peer is self._peer) for peer, message in taken]

    def send(self, message: dict[str, Any]) -> None:
        if self._peer is not None:
            self._out += json.dumps(message, separators=(",", ":")).encode() + b"\n"

    def flush(self) -> None:
        if self._peer is None:
            return
        try:
            while self._out:
                count = self._peer.send(self._out[: 1 << 18])
                del self._out[:count]
        except BlockingIOError:
            pass
        except OSError:
            self._replace(None)
            return
        mask = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._out else 0)
        self._selector.modify(self._peer, mask, ("control", None))

    def refuse(self, reason: str) -> None:
        self.send({"op": "refused", "reason": reason})
        self.flush()
        self._replace(None)

    def close(self) -> None:
        self.flush()
        self._replace(None)
        self._selector.unregister(self._listener)
        self._listener.close()
        self._path.unlink(missing_ok=True)
        os.close(self._lock)
