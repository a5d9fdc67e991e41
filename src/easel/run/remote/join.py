"""This machine becomes a device of a pool elsewhere: its worker, and the relay that speaks for it."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from easel.clock import SystemClock
from easel.declare.names import slug
from easel.declare.resources import Room
from easel.errors import InvalidInput, Misconfigured
from easel.run.depots import TOKEN
from easel.run.executors.local import LocalExecutor
from easel.run.remote.depot import Link
from easel.run.remote.placed_home import placed_home
from easel.run.remote.relay import About, Relay
from easel.run.remote.visits import VisitCarrier
from easel.run.worker_config import WorkerConfig


@dataclass(frozen=True, slots=True)
class Joining:
    """What `easel worker --server` was told. `parent` is a process that this worker must not outlive."""

    server: str
    token: str = field(repr=False)
    home: Path
    name: str
    capacity: Room
    labels: Mapping[str, str] = field(default_factory=dict)
    executor: str = "remote"
    sandbox: bool = True
    unsandboxed: bool = False
    interpreters: tuple[Path, ...] = ()
    preload: tuple[str, ...] = ()
    idle_exit_s: float | None = None
    lasts_s: float | None = None
    parent: int | None = None


def join(joining: Joining) -> None:
    """Works until SIGTERM, a refusal, or idleness. What runs then is ended, and tried again elsewhere."""
    server = joining.server.rstrip("/")
    if urlsplit(server).scheme not in ("http", "https"):
        raise InvalidInput(f"{joining.server!r} is not an address like https://easel.example.org")
    slug(joining.name, "device")
    (joining.home / "run").mkdir(parents=True, exist_ok=True, mode=0o700)
    woken, stopping = threading.Event(), threading.Event()
    config = WorkerConfig(
        joining.home,
        joining.name,
        joining.capacity,
        server,
        joining.preload,
        sandbox=joining.sandbox,
        unsandboxed=joining.unsandboxed,
        interpreters=joining.interpreters,
        orphan_after_s=300.0,
        credentials={TOKEN: joining.token},
        parent=None if joining.parent is None else os.getpid(),
    )
    executor = LocalExecutor(config, SystemClock(), woken.set)
    about = About(
        joining.name,
        joining.executor,
        joining.labels,
        _own_address(server),
        joining.lasts_s,
        joining.idle_exit_s,
    )
    link = Link(server, joining.token)
    visits = VisitCarrier(link, config.attempts)
    fence = _next_fence(joining.home)
    relay = Relay(executor, link, about, SystemClock(), woken, fence, visits)

    def stop(*_: object) -> None:
        stopping.set()
        woken.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    relay.run(stopping)


def join_placed(joining: Joining) -> None:
    """Works as `join` does, in a home that an engine gave us for this once."""
    with placed_home(joining.home):
        join(joining)


def read_token(file: Path | None, environment: Mapping[str, str]) -> str:
    """Returns the token from a file or EASEL_TOKEN: an argument would be seen by everybody on the machine."""
    if file is not None:
        try:
            token = file.read_text().strip()
        except OSError as error:
            raise Misconfigured(f"cannot read the token file {file}: {error.strerror}") from error
    else:
        token = environment.get(TOKEN, "").strip()
    if not token:
        raise Misconfigured(
            "a worker needs a token: --token-file FILE or EASEL_TOKEN (`easel workers token`)"
        )
    return token


def _next_fence(home: Path) -> int:
    """Larger than any before on this machine, whatever the clock says."""
    file = home / "run" / "relay.fence"
    try:
        last = int(file.read_text())
    except (FileNotFoundError, ValueError):
        last = 0
    fresh = file.with_suffix(".new")
    fresh.write_text(str(last + 1))
    fresh.replace(file)
    return last + 1


def _own_address(server: str) -> str:
    """The address of this machine on the way to the server, by which its peers reach it too."""
    url = urlsplit(server)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((url.hostname or "127.0.0.1", url.port or 443))  # no packet is sent
            return str(probe.getsockname()[0])
    except OSError:
        return socket.gethostname()
