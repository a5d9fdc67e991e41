"""Audit entries as syslog messages (RFC 5424), over UDP, TCP or the machine's own socket."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from typing import Protocol
from urllib.parse import urlsplit

from easel.errors import Misconfigured
from easel.records.audit import AuditOutcome, ChainedEntry, plain

_FACILITY = 13  # log audit
_NOTICE, _WARNING = 5, 4
_TIMEOUT_S = 3.0


class AuditSender(Protocol):
    def send(self, messages: Sequence[bytes]) -> None:
        """Send all of them, or raise OSError."""


def message(each: ChainedEntry, host: str) -> bytes:
    """One entry as a message; what was refused is a warning."""
    severity = _NOTICE if each.entry.outcome is AuditOutcome.ALLOWED else _WARNING
    body = json.dumps({"seq": each.seq, **plain(each.entry), "hash": each.hash}, ensure_ascii=True)
    moment = each.entry.at.isoformat(timespec="microseconds").replace("+00:00", "Z")
    return f"<{_FACILITY * 8 + severity}>1 {moment} {host} easel - audit - {body}".encode()


class SyslogSender:
    """Opens a connection for each batch: batches are few, and a log server may have been restarted."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("udp", "tcp", "unix"):
            raise Misconfigured("audit_syslog must be udp://host:port, tcp://host:port or unix:///dev/log")
        self._scheme, self._path = parts.scheme, parts.path
        self._target = (parts.hostname or "127.0.0.1", parts.port or 514)

    def send(self, messages: Sequence[bytes]) -> None:
        if self._scheme == "tcp":
            with socket.create_connection(self._target, timeout=_TIMEOUT_S) as link:
                # Octet counting (RFC 6587): a message may hold line feeds.
                link.sendall(b"".join(b"%d %b" % (len(each), each) for each in messages))
            return
        if self._scheme == "unix":
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
                link.settimeout(_TIMEOUT_S)
                link.connect(self._path)
                for each in messages:
                    link.send(each)
            return
        family = socket.getaddrinfo(*self._target, type=socket.SOCK_DGRAM)[0][0]
        with socket.socket(family, socket.SOCK_DGRAM) as link:
            for each in messages:
                link.sendto(each, self._target)
