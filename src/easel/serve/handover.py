"""Large files of this machine come by descriptor: a program hands over its open file, the kernel copies it.

Through HTTP every byte is copied five times by two Python programs; by descriptor the page cache is read once, and a
file system that shares blocks copies nothing at all. The permission is the same signed address that a PUT would use,
and only the owner of the home (or root) can reach the socket. Whoever cannot, sends by HTTP.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from easel.errors import EaselError, InvalidInput
from easel.flow.lake.upload import Lake, receive_part
from easel.lake.blobs.local import LocalBlobs
from easel.lake.blobs.store import FileSlice
from easel.serve.lake import BLOBS, Addresses

_log = logging.getLogger(__name__)
MESSAGE = 4096
READY = b"ready"
_LONGEST = 100  # a socket's path must fit into 108 bytes
_PATIENCE_S = 5.0
_AT_ONCE = 8


@contextlib.contextmanager
def handing_over(home: Path, lake: Lake, addresses: Addresses) -> Iterator[str]:
    """Listen while the block runs; yields the socket's path, or nothing where there can be none."""
    path = home / "run" / f"handover-{os.getpid()}.sock"
    if not isinstance(lake.blobs, LocalBlobs) or len(os.fsencode(path)) > _LONGEST:
        yield ""
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    for other in path.parent.glob("handover-*.sock"):
        pid = other.stem.partition("-")[2]
        if other == path or not Path(f"/proc/{pid}").exists():  # of a server that was killed
            other.unlink(missing_ok=True)
        else:
            _log.warning(
                "another server (process %s) uses this home too: both answer, one runs the jobs", pid
            )
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen(_AT_ONCE)
        threading.Thread(target=_accept, args=(listener, lake, addresses), daemon=True).start()
        yield str(path)
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)  # wakes whoever waits in `accept`
        listener.close()
        path.unlink(missing_ok=True)


def _accept(listener: socket.socket, lake: Lake, addresses: Addresses) -> None:
    places = threading.BoundedSemaphore(_AT_ONCE)
    while True:
        places.acquire()
        try:
            connection, _ = listener.accept()
        except OSError:  # closed: the server stops
            return

        def answer(connection: socket.socket = connection) -> None:
            try:
                with connection:
                    _answer(connection, lake, addresses)
            finally:
                places.release()

        threading.Thread(target=answer, daemon=True).start()


def _answer(connection: socket.socket, lake: Lake, addresses: Addresses) -> None:
    """Part after part, until the other side closes or goes silent. Whoever waits for a place is not greeted yet."""
    connection.settimeout(_PATIENCE_S)
    with contextlib.suppress(OSError):
        connection.send(READY)
    while True:
        try:
            message, descriptors, _, _ = socket.recv_fds(connection, MESSAGE, 1)
        except OSError:
            return
        try:
            if not message:
                return
            _take(message, descriptors, lake, addresses)
            told = {}
        except EaselError as error:
            told = {"kind": error.kind, "detail": str(error)}
        except (
            OSError,
            OverflowError,
            RecursionError,
        ) as error:  # a descriptor that cannot be read, absurd numbers
            told = {"kind": InvalidInput.kind, "detail": f"this file cannot be taken: {type(error).__name__}"}
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        with contextlib.suppress(OSError):
            connection.send(json.dumps(told).encode())


def _take(message: bytes, descriptors: list[int], lake: Lake, addresses: Addresses) -> None:
    try:
        asked = json.loads(message)
        url, offset, size = urlsplit(asked["url"]), int(asked["offset"]), int(asked["size"])
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        expires, signature = int(query["expires"]), query["signature"]
        prefix, stage, number = url.path.rsplit("/", 2)
        part = int(number)
        (descriptor,) = descriptors
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise InvalidInput("send an address, an offset, a size and one open file") from None
    now = lake.store.clock.now().timestamp()
    addresses.signer.check("PUT", url.path, {}, expires, signature, now)
    if prefix != f"{BLOBS}/stages" or offset < 0 or not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise InvalidInput("send the address of a part, and a plain file with where in it the part begins")
    receive_part(lake, stage, part, FileSlice(descriptor, offset, size))
