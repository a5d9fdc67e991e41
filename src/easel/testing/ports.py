"""Ports for servers that must be told theirs."""

from __future__ import annotations

import contextlib
import secrets
import socket


def free_port() -> int:
    """Returns a port below those that the kernel hands out and above those that Ray takes for its workers.

    Between our look and the server's start nobody else is given it.
    """
    while True:
        port = 20_000 + secrets.randbelow(10_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
