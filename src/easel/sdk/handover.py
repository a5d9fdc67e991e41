"""A file of this machine goes to a server of this machine by descriptor; see `serve/handover.py`."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from easel.sdk.connection import error_of

_ANSWER = 4096
_GREETING_S = 2.0
"""How long to wait for a place; HTTP has always one."""
_PATIENCE_S = 120.0


class Handover:
    """A part at a time and thread, each over a connection of its own."""

    def __init__(self, path: str) -> None:
        self._path = path

    def put(self, url: str, descriptor: int, offset: int, size: int) -> bool:
        """Have the server take a part from an open file; False where that cannot be: send it another way."""
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
                connection.settimeout(_GREETING_S)
                connection.connect(self._path)
                if not connection.recv(_ANSWER):
                    return False
                connection.settimeout(_PATIENCE_S)
                asked = json.dumps({"url": url, "offset": offset, "size": size})
                socket.send_fds(connection, [asked.encode()], [descriptor])
                answer = connection.recv(_ANSWER)
        except OSError:
            return False
        if not answer:
            return False
        told = json.loads(answer)
        if told:
            raise error_of(str(told["kind"]), str(told["detail"]))
        return True


@contextmanager
def opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def in_memory(data: bytes) -> Iterator[int]:
    """Bytes as an open file that has no name."""
    descriptor = os.memfd_create("easel-pack")
    try:
        with open(descriptor, "wb", buffering=0, closefd=False) as file:
            view = memoryview(data)
            while view:
                view = view[file.write(view) :]
        yield descriptor
    finally:
        os.close(descriptor)


def is_here(server: str) -> bool:
    """Whether an address means this very machine: to no other do we hand files by name."""
    host = urlsplit(server).hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
