"""The way from a job to MLflow's API of its project, and to nothing else.

The job keeps a network namespace without any way out. In it a port of its loopback leads here, into the process beside
the job, which passes requests on to the server: those below the project's address only. What comes back goes back.
Who calls is known by the job's own token, which opens the same addresses and no others.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from functools import cached_property
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from urllib.parse import unquote, urlsplit

from easel.errors import EaselError
from easel.run.egress import listener_in
from easel.sdk.plain_http import is_untrusted, tls_context, unreachable

PORT = 3129
_AT_ONCE = 64
_IDLE_S, _ANSWER_S = 300.0, 600.0
_PIECE = 1 << 16
_HOP = frozenset(
    (
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "host",
        "expect",
        "content-length",
    )
)
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104


def reachable(address: str, server: str | None) -> str | None:
    """Where a worker finds the API: at the server that it joined, or where the server says; None if nowhere.

    A server that listens everywhere is found on this machine's loopback.
    """
    if server is not None:
        return server.rstrip("/") + urlsplit(address).path
    parts = urlsplit(address)
    if not parts.hostname:
        return None
    for everywhere, here in _ANYWHERE.items():
        if parts.netloc.rpartition(":")[0] == everywhere:
            return address.replace(everywhere, here, 1)
    return address


def inside(address: str) -> str:
    """The address of the same API as the job sees it."""
    return f"http://127.0.0.1:{PORT}{urlsplit(address).path}"


def open_way(pid: int, address: str) -> TrackingWay:
    """Gives the network namespace of process `pid` its port, and serves it until this process ends."""
    way = TrackingWay(listener_in(pid, PORT), address)
    threading.Thread(target=way.serve_forever, name="tracking", daemon=True).start()
    return way


class TrackingWay(ThreadingHTTPServer):
    """Passes requests below `address` on."""

    daemon_threads = True

    def __init__(self, listener: socket.socket, address: str) -> None:
        super().__init__(("127.0.0.1", 0), _Passing, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        parts = urlsplit(address)
        self.prefix = parts.path.rstrip("/") + "/"
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self._tls, self._host, self._port = parts.scheme == "https", parts.hostname or "", parts.port
        self._room = threading.BoundedSemaphore(_AT_ONCE)

    def connect(self) -> HTTPConnection:
        """A connection that trusts what the worker's own does, the authority in EASEL_CA_FILE too."""
        if self._tls:
            return HTTPSConnection(self._host, self._port, timeout=_ANSWER_S, context=self._trusted)
        return HTTPConnection(self._host, self._port, timeout=_ANSWER_S)

    @cached_property
    def _trusted(self) -> ssl.SSLContext:
        return tls_context()

    def process_request_thread(self, request: object, client_address: object) -> None:
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)  # type: ignore[arg-type]
            return
        try:
            super().process_request_thread(request, client_address)  # type: ignore[arg-type]
        finally:
            self._room.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """A job that hangs up is no fault of ours."""


class _Passing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_S
    server: TrackingWay

    def _pass(self) -> None:
        if not _is_below(self.server.prefix, self.path):
            self._refuse(403, "PERMISSION_DENIED", "this way leads to MLflow's API of the job's project only")
            return
        length = self.headers.get("content-length")
        chunked = self.headers.get("transfer-encoding", "").lower() == "chunked"
        if (chunked and length is not None) or not (length is None or length.isdecimal()):
            self._refuse(400, "INVALID_PARAMETER_VALUE", "the length of the body is not clear")
            return
        try:
            connection = self.server.connect()
        except EaselError as error:  # EASEL_CA_FILE names no usable file
            self._refuse(400, "INVALID_STATE", error.message)
            return
        try:
            connection.putrequest(self.command, self.path, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in _HOP:
                    connection.putheader(name, value)
            if chunked:
                connection.putheader("Transfer-Encoding", "chunked")
                connection.endheaders(_chunks(self.rfile), encode_chunked=True)
            else:
                connection.putheader("Content-Length", length or "0")
                connection.endheaders(_pieces(self.rfile, int(length or 0)))
            answer = connection.getresponse()
        except (OSError, HTTPException) as error:
            if is_untrusted(error):  # clients try again for minutes what answers with 503
                self._refuse(400, "INVALID_STATE", unreachable(self.server.origin, error).message)
            else:
                self._refuse(503, "TEMPORARILY_UNAVAILABLE", "the server does not answer: try again shortly")
        else:
            self._answer(answer)
        finally:
            connection.close()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _pass  # noqa: N815

    def _answer(self, answer: HTTPResponse) -> None:
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _HOP:
                self.send_header(name, value)
        bodiless = self.command == "HEAD" or answer.status in (204, 304)
        if answer.length is not None and not bodiless:
            self.send_header("Content-Length", str(answer.length))
        elif not bodiless:
            self.close_connection = True
            self.send_header("Connection", "close")
        self.end_headers()
        while not bodiless and (piece := answer.read(_PIECE)):
            self.wfile.write(piece)

    def _refuse(self, status: int, code: str, message: str) -> None:
        self.close_connection = True
        body = json.dumps({"error_code": code, "message": message}).encode()
        with contextlib.suppress(OSError):
            self.send_response_only(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return None


def _is_below(prefix: str, target: str) -> bool:
    """Whether a request's target lies below the address, however it is written."""
    path = target.partition("?")[0]
    while (plain := unquote(path)) != path:
        path = plain
    return target.startswith(prefix) and ".." not in path.replace("\\", "/").split("/")


def _pieces(source: BufferedIOBase, length: int) -> Iterator[bytes]:
    while length > 0:
        piece = source.read(min(length, _PIECE))
        if not piece:
            raise ConnectionError("the body was cut off")
        length -= len(piece)
        yield piece


def _chunks(source: BufferedIOBase) -> Iterator[bytes]:
    while size := int(source.readline(20).partition(b";")[0], 16):
        yield from _pieces(source, size)
        source.readline(4)
    while source.readline(1000).strip():
        pass
