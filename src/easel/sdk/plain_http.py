"""HTTP over the standard library: a command imports it in a tenth of the time that a large client takes."""

from __future__ import annotations

import http.client
import json
import os
import re
import ssl
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from easel import errors

CA_FILE = "EASEL_CA_FILE"
"""Names a PEM file of authorities to trust beside the usual ones: for a server with a certificate of one's own."""
CONNECT_S = 5.0
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_FAULTS = (OSError, http.client.HTTPException)


class TransportFailed(Exception):
    """No whole answer came: nobody listens, the connection broke, or it took too long."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause) or type(cause).__name__)
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that has come whole."""

    status_code: int
    headers: http.client.HTTPMessage
    content: bytes

    @property
    def is_error(self) -> bool:
        return self.status_code >= 400

    @property
    def text(self) -> str:
        return self.content.decode()

    def json(self) -> Any:
        return json.loads(self.content)


def tls_context() -> ssl.SSLContext:
    """Returns what certificates are checked against: the usual authorities, and those of EASEL_CA_FILE."""
    context = ssl.create_default_context()
    if not os.environ.get("SSL_CERT_FILE"):
        try:
            import certifi

            context.load_verify_locations(certifi.where())
        except ImportError:
            pass  # the system's own are loaded already
    file = os.environ.get(CA_FILE)
    if file:
        try:
            context.load_verify_locations(file)
        except (OSError, ssl.SSLError) as error:
            raise errors.Misconfigured(
                f"{CA_FILE} names {file}, which is no usable PEM file: {error}"
            ) from error
    return context


def is_untrusted(error: Exception) -> bool:
    """Whether a server's certificate was refused: no later attempt finds a better one."""
    return isinstance(error, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY_FAILED" in str(error)


def unreachable(server: str, error: Exception) -> errors.EaselError:
    """Returns why no answer came from a server, and what to do about it."""
    if is_untrusted(error):
        return errors.Misconfigured(
            f"the certificate of {server} is not trusted ({error}): name the file of the authority that "
            f"signed it in {CA_FILE}"
        )
    if "SSL" in str(error).upper():
        return errors.Misconfigured(
            f"{server} does not speak TLS as expected ({error}): is it http:// rather than https://?"
        )
    return errors.TryLater(
        f"no answer from {server} ({type(error).__name__}): is it running, and is the address right?"
    )


def has_proxy() -> bool:
    """Whether the environment names a proxy, which the larger client knows how to use."""
    return any(os.environ.get(name) or os.environ.get(name.upper()) for name in _PROXIES)


class PlainHttp:
    """One server. Connections are kept and used again; any thread may ask."""

    def __init__(self, server: str, headers: Mapping[str, str], timeout: float) -> None:
        parts = urlsplit(server)
        self._host, self._port = parts.hostname or "", parts.port
        self._context = tls_context() if parts.scheme == "https" else None
        self._prefix = parts.path.rstrip("/")
        self._headers = dict(headers)
        self._timeout = timeout
        self._idle: deque[http.client.HTTPConnection] = deque(maxlen=32)

    def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send, and read the whole answer. TransportFailed where none came."""
        body, sent = _body(json)
        sent |= headers or {}
        try:
            connection, answer = self._send(method, _target(self._prefix, path, params), body, sent)
            content = answer.read()
        except _FAULTS as error:
            raise TransportFailed(error) from error
        if answer.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        return Reply(answer.status, answer.headers, content)

    @contextmanager
    def lines(self, path: str, headers: Mapping[str, str], timeout: float) -> Iterator[Iterator[str] | Reply]:
        """The lines of an answer as they come, or the whole answer where it is an error."""
        connection = self._connected(timeout)
        try:
            sent = {**self._headers, **headers}
            connection.request("GET", _target(self._prefix, path, None), headers=sent)
            answer = connection.getresponse()
            if answer.status >= 400:
                yield Reply(answer.status, answer.headers, answer.read())
            else:
                yield (line.decode().rstrip("\r\n") for line in answer)
        except _FAULTS as error:
            raise TransportFailed(error) from error
        finally:
            connection.close()

    def _send(
        self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """A kept connection may have been closed by the server meanwhile: then a new one is opened."""
        sent = {**self._headers, **headers}
        while True:
            try:
                connection, kept = self._idle.pop(), True
            except IndexError:
                connection, kept = self._connected(self._timeout), False
            try:
                connection.request(method, target, body=body, headers=sent)
                return connection, connection.getresponse()
            except _FAULTS as error:
                connection.close()
                if not kept or isinstance(error, TimeoutError):
                    raise

    def _connected(self, timeout: float) -> http.client.HTTPConnection:
        if self._context is not None:
            made: http.client.HTTPConnection = http.client.HTTPSConnection(
                self._host, self._port, timeout=CONNECT_S, context=self._context
            )
        else:
            made = http.client.HTTPConnection(self._host, self._port, timeout=CONNECT_S)
        made.connect()
        made.sock.settimeout(timeout)
        return made

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()


def _body(value: Any) -> tuple[bytes | None, dict[str, str]]:
    if value is None:
        return None, {}
    return json.dumps(value, separators=(",", ":")).encode(), {"Content-Type": "application/json"}


def _target(prefix: str, path: str, params: Mapping[str, Any] | None) -> str:
    """The path as it is sent: what is no part of an address escaped, what is escaped already left alone."""
    target = prefix + quote(_LONE_PERCENT.sub("%25", path), safe="/?:@!$&'()*+,;=%~[]")
    given = [(name, each) for name, value in (params or {}).items() for each in _each(value)]
    if not given:
        return target
    return f"{target}{'&' if '?' in target else '?'}{urlencode(given)}"


def _each(value: Any) -> list[str]:
    if isinstance(value, list | tuple):
        return [text for one in value for text in _each(one)]
    return ["true" if value is True else "false" if value is False else str(value)]
