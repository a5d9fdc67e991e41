"""Whether a kernel of a session runs a cell, as its Jupyter server says; whatever else a program may answer."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

import pytest

from easel.run.session_kernels import kernel_is_busy

BUSY = b'[{"id": "k", "execution_state": "idle"}, {"id": "l", "execution_state": "busy"}]'
IDLE = b'[{"id": "k", "execution_state": "idle"}]'


def program(answer: bytes, heard: list[bytes]) -> Callable[[], socket.socket]:
    """Connects to a program that answers once, and leaves."""

    def dial() -> socket.socket:
        ours, theirs = socket.socketpair()

        def serve() -> None:
            with theirs:
                heard.append(theirs.recv(4096))
                theirs.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        return ours

    return dial


def ok(body: bytes) -> bytes:
    return b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + body


def test_a_kernel_that_runs_a_cell_is_work() -> None:
    heard: list[bytes] = []
    assert kernel_is_busy(program(ok(BUSY), heard), "/sessions/job_1/")
    assert heard[0].startswith(b"GET /sessions/job_1/api/kernels HTTP/1.0\r\n")
    assert not kernel_is_busy(program(ok(IDLE), heard), "/")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.0 404 Not Found\r\n\r\n" + BUSY,
        ok(b"<html>"),
        ok(b'{"execution_state": "busy"}'),
        ok(b'["busy", 3, null]'),
        ok(b"[" * 200_000),
        ok(b"\xff\xfe"),
        b"nonsense",
    ],
    ids=lambda answer: repr(answer[:60]),
)
def test_a_program_that_knows_no_kernels_is_not_busy(answer: bytes) -> None:
    assert not kernel_is_busy(program(answer, []), "/")


def test_a_program_that_does_not_listen_is_not_busy() -> None:
    def refused() -> socket.socket:
        raise ConnectionRefusedError

    assert not kernel_is_busy(refused, "/")
