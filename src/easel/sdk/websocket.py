"""A websocket client, as small as a terminal needs: messages whole, pings answered, nothing compressed (RFC 6455)."""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
import socket
import ssl
import struct
import threading
from collections.abc import Mapping
from urllib.parse import urlsplit

from easel.errors import TryLater
from easel.sdk.plain_http import tls_context, unreachable

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_MOST = 64 << 20


def _wrapped(stream: socket.socket, host: str, server: str) -> ssl.SSLSocket:
    try:
        return tls_context().wrap_socket(stream, server_hostname=host)
    except OSError as error:
        stream.close()
        raise unreachable(server, error) from error


class WebSocket:
    """Connected when made. One thread may read while others send."""

    def __init__(self, address: str, headers: Mapping[str, str]) -> None:
        where = urlsplit(address)
        secure = where.scheme in ("https", "wss")
        host, port = where.hostname or "", where.port or (443 if secure else 80)
        try:
            stream = socket.create_connection((host, port), 30)
        except OSError as error:
            raise TryLater(f"{host}:{port} does not answer: {error}") from error
        if secure:
            stream = _wrapped(stream, host, f"https://{where.netloc}")
        self._stream, self._lock = stream, threading.Lock()
        self._file = stream.makefile("rb")
        try:
            self._greet(where.path + (f"?{where.query}" if where.query else ""), where.netloc, headers)
        except BaseException:
            self._file.close()
            stream.close()
            raise
        stream.settimeout(None)

    def _greet(self, path: str, host: str, headers: Mapping[str, str]) -> None:
        key = base64.b64encode(secrets.token_bytes(16)).decode()
        asked = {
            "Host": host,
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Key": key,
            "Sec-WebSocket-Version": "13",
            **headers,
        }
        lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in asked.items())]
        self._stream.sendall("\r\n".join([*lines, "", ""]).encode())
        status = self._file.readline().decode(errors="replace").strip()
        given: dict[str, str] = {}
        while line := self._file.readline().strip():
            name, _, value = line.decode(errors="replace").partition(":")
            given[name.lower()] = value.strip()
        wanted = base64.b64encode(hashlib.sha1(f"{key}{_GUID}".encode()).digest()).decode()  # noqa: S324 - the protocol's
        if " 101 " not in f"{status} " or given.get("sec-websocket-accept") != wanted:
            raise TryLater(f"the server, or a proxy before it, opens no websocket: {status[:200]}")

    def send(self, data: bytes, kind: int = BINARY) -> None:
        head = bytes([0x80 | kind])
        if len(data) < 126:
            head += bytes([0x80 | len(data)])
        elif len(data) < 1 << 16:
            head += bytes([0x80 | 126]) + struct.pack(">H", len(data))
        else:
            head += bytes([0x80 | 127]) + struct.pack(">Q", len(data))
        mask = os.urandom(4)
        repeated = (mask * (len(data) // 4 + 1))[: len(data)]
        masked = (int.from_bytes(data, "big") ^ int.from_bytes(repeated, "big")).to_bytes(len(data), "big")
        with self._lock:
            self._stream.sendall(head + mask + masked)

    def receive(self) -> tuple[int, bytes] | None:
        """The next message as (kind, data); None when the other side has closed."""
        kind, data = 0, b""
        while True:
            head = self._file.read(2)
            if len(head) < 2:
                return None
            code, length = head[0] & 0x0F, head[1] & 0x7F
            if length == 126:
                (length,) = struct.unpack(">H", self._file.read(2))
            elif length == 127:
                (length,) = struct.unpack(">Q", self._file.read(8))
            if length > _MOST:
                return None
            piece = self._file.read(length)
            if code == CLOSE:
                return None
            if code == PING:
                self.send(piece, PONG)
            elif code != PONG:
                kind, data = code or kind, data + piece
                if head[0] & 0x80:
                    return kind, data

    def close(self) -> None:
        try:
            self.send(struct.pack(">H", 1000), CLOSE)
        except OSError:
            pass
        finally:
            self._file.close()
            self._stream.close()
