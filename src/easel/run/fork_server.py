"""The fork server: a process that has imported what trials need and forks one ready process for each request.

It speaks lines on its socket: `import NAME` (answered by nothing) and `fork` with a file descriptor attached,
answered by the pid. A forked process reads assignments from that descriptor.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import signal
import socket
import sys
from pathlib import Path

from easel.clock import SystemClock
from easel.run.assignments import serve
from easel.run.depots import open_depot

GIVES_WAY_BY = 5
"""What trials add to the niceness of their worker: learning goes on for hours, whoever asks a model waits."""


def preload(names: list[str]) -> None:
    """Import what is installed; what is not is somebody else's trial."""
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            continue


def main(
    listener: socket.socket, address: str, cache: Path, names: list[str], home: Path | None = None
) -> None:
    """Forks on request until the worker closes `listener`. With `home`, trials run behind walls that hide it."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forked processes are reaped by the kernel
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(GIVES_WAY_BY)
    preload(names)
    depot = open_depot(address, cache)
    while True:
        message, fds, _, _ = socket.recv_fds(listener, 4096, 1)
        if not message:
            return
        word, _, name = message.decode().strip().partition(" ")
        if word == "import":
            preload([name])
            continue
        pid = os.fork()
        if pid == 0:
            listener.close()
            os.setsid()
            try:
                serve(fds[0], depot, SystemClock(), home)
            finally:
                os._exit(0)
        for fd in fds:
            os.close(fd)
        listener.sendall(f"{pid}\n".encode())


if __name__ == "__main__":
    number, address, cache, names, home = sys.argv[1:]
    preloaded = names.split(",") if names else []
    main(socket.socket(fileno=int(number)), address, Path(cache), preloaded, Path(home) if home else None)
