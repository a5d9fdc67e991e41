"""Starting and stopping: prepare the home, migrate, listen, and stop without cutting anybody off."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import nullcontext
from types import FrameType

import uvicorn
from fastapi import FastAPI

from easel import traces
from easel.errors import Misconfigured
from easel.flow.backup import backup_before_migration
from easel.flow.first_start import create_platform_admin
from easel.run.worker_main import run_worker
from easel.serve import logs
from easel.serve.app import create_app
from easel.serve.controller import Controller
from easel.serve.handover import handing_over
from easel.serve.hosting import build_controller, hosted, options_of
from easel.serve.housekeeping import backing_of
from easel.serve.lake import open_lake
from easel.serve.messenger import sender_of
from easel.serve.patience import ImpatientProtocol
from easel.serve.settings import Settings, prepare_home
from easel.serve.state import AppState
from easel.store.engine import Store
from easel.store.idempotency import forget_old
from easel.store.migrate import migrate

STOPPING = "it is about to stop"


class Server(uvicorn.Server):
    """Tells open streams to end when a signal comes: otherwise it would wait for each of them."""

    def __init__(self, config: uvicorn.Config, state: AppState) -> None:
        super().__init__(config)
        self._state = state

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop, after `stop_delay_s` in which a proxy learns that no more should come; at a second signal at once."""
        delay = self._state.settings.stop_delay_s
        if delay and self._state.cordoned is not STOPPING:
            self._state.cordoned = STOPPING
            timer = threading.Timer(delay, self._stop, (sig,))
            timer.daemon = True
            timer.start()
        else:
            self._stop(sig)

    def _stop(self, sig: int) -> None:
        self._state.stopping.set()
        threading.Thread(target=self._state.batcher.close, name="exchange-batcher-close", daemon=True).start()
        super().handle_exit(sig, None)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        # It would now raise the signal again and die of it; we have more to close, and end with 0.
        self._captured_signals.clear()


def trace(settings: Settings) -> None:
    """Sends traces from now on where the settings say so, also those of processes that are started here."""
    if settings.traces:
        os.environ[traces.VARIABLE] = settings.traces
    traces.check()


def open_store(settings: Settings) -> Store:
    """The migrated store of this home."""
    prepare_home(settings)
    store = Store(settings.database)
    migrate(store, backup_before_migration(store, settings.folder))
    with store.write() as tx:
        forget_old(tx)
    return store


def run(settings: Settings, greet: Callable[[str, str | None], None], *, engine: bool = False) -> None:
    """Serve until told to stop, with `engine` also run jobs.

    `greet(address, first_token)` is called once, when the port is ours.
    """
    logs.configure(settings.log_level, settings.log_requests)
    trace(settings)
    store = open_store(settings)
    listener = _listen(settings)
    try:
        token = create_platform_admin(store)
        app = create_app(settings, store)
        host, port = listener.getsockname()[:2]
        address = f"http://{host if ':' not in host else f'[{host}]'}:{port}"
        greet(address, token)
        state: AppState = app.state.easel
        loop = (
            hosted(
                controller(settings, store, address=address),
                sender=sender_of(settings, store),
                backing=backing_of(settings, state.lake),
            )
            if engine
            else nullcontext()
        )
        with loop, handing_over(settings.folder, state.lake, state.addresses) as state.handover:
            try:
                serve(app, listener, settings)
            finally:
                state.batcher.close()
    finally:
        listener.close()
        store.close()


def controller(
    settings: Settings, store: Store, *, spawn_worker: bool = True, address: str = ""
) -> Controller:
    """The job engine of this home. `address` is where this server listens, if it does."""
    options = options_of(settings, spawn_worker=spawn_worker, address=address)
    return build_controller(open_lake(settings, store), options)


def run_controller(settings: Settings, *, spawn_worker: bool) -> None:
    """Runs only the controller, until told to stop. Several may run; one acts, the others stand by."""
    logs.configure(settings.log_level, settings.log_requests)
    trace(settings)
    store = open_store(settings)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    try:
        loop = controller(settings, store, spawn_worker=spawn_worker)
        sender, backing = sender_of(settings, store), backing_of(settings, loop.advancer.lake)
        with hosted(loop, stop_worker=spawn_worker, sender=sender, backing=backing):
            stopping.wait()
    finally:
        store.close()


def run_worker_here(settings: Settings) -> None:
    """Runs only this machine's devices, until told to stop."""
    prepare_home(settings)
    run_worker(options_of(settings, spawn_worker=False).worker)


def serve(app: FastAPI, listener: socket.socket, settings: Settings) -> None:
    config = uvicorn.Config(
        app,
        http=ImpatientProtocol,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=settings.trusted_proxies,
        timeout_graceful_shutdown=10,
    )
    Server(config, app.state.easel).run(sockets=[listener])


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise Misconfigured(
            f"cannot listen on {settings.host}:{settings.port} ({error.strerror}): "
            "stop what listens there, or set EASEL_PORT"
        ) from error
    return listener
