"""Whether a session's Jupyter server runs a cell: one that waits takes no processor, and is work all the same."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from contextlib import suppress

PATIENCE_S = 2.0
_LARGEST = 1 << 20


def kernel_is_busy(dial: Callable[[], socket.socket], base: str) -> bool:
    """Asks the program behind `dial`, whose pages lie under `base`; False where it knows no kernels or says nothing."""
    asked = f"GET {base}api/kernels HTTP/1.0\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    with suppress(OSError, ValueError, RecursionError), dial() as program:
        head, _, body = _answer(program, asked.encode()).partition(b"\r\n\r\n")
        if head.split(b" ", 2)[1:2] != [b"200"]:
            return False
        found = json.loads(body)
        kernels = found if isinstance(found, list) else []
        return any(isinstance(one, dict) and one.get("execution_state") == "busy" for one in kernels)
    return False


def _answer(program: socket.socket, asked: bytes) -> bytes:
    """All that it says within `PATIENCE_S`, however slowly: nobody's program keeps its agent from other work."""
    until, answer = time.monotonic() + PATIENCE_S, b""
    program.settimeout(PATIENCE_S)
    program.sendall(asked)
    while len(answer) < _LARGEST and (left := until - time.monotonic()) > 0:
        program.settimeout(left)
        piece = program.recv(1 << 16)
        if not piece:
            break
        answer += piece
    return answer
