"""A server for workers that pull, in a thread of the test, and real workers in processes of their own."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import uvicorn

from easel.clock import SystemClock
from easel.flow.workers.executor import RemoteExecutor
from easel.flow.workers.seal import Seal
from easel.flow.workers.tokens import issue
from easel.serve.app import create_app
from easel.serve.lake import signing_key
from easel.serve.settings import UNDERSTOOD, Settings
from easel.store.engine import Store
from easel.store.migrate import migrate
from easel.testing.databases import new_sqlite
from easel.testing.engine import alive, until


class RemoteServer:
    """API routes over one home. `pool(name)` drives the devices that pull from it, as a controller would."""

    def __init__(self, home: Path, database_url: str | None = None) -> None:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.home = home
        self.settings = Settings(home=home, sandbox=False, unsandboxed=UNDERSTOOD)
        self.store = Store(database_url or new_sqlite(home / "easel.sqlite"))
        migrate(self.store, backup=lambda _revision: None)
        self.seal = Seal(signing_key(home))
        with self.store.write() as tx:
            made = issue(tx, None, "test")
        self.token, self.token_id = made.secret, made.token.id
        self.port = 0
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self.workers: list[subprocess.Popen[bytes]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Serve; after `stop`, again at the same port."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        self.port = listener.getsockname()[1]
        self.app = create_app(self.settings, self.store)
        config = uvicorn.Config(self.app, log_config=None, access_log=False, timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listener]}, name="pool-server", daemon=True
        )
        self._thread.start()
        until(lambda: self._server is not None and self._server.started)

    def stop(self) -> None:
        assert self._server is not None
        assert self._thread is not None
        self.app.state.easel.stopping.set()
        self.app.state.easel.batcher.close()
        self._server.should_exit = True
        self._thread.join(30)

    def pool(self, name: str = "remote", lost_after: float = 60.0) -> RemoteExecutor:
        return RemoteExecutor(self.store, self.seal, SystemClock(), name, lost_after)

    def worker(
        self,
        name: str,
        *more: str,
        vcpu: float = 2.0,
        memory_mb: int = 2048,
        server: str | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """`easel worker --server`, which is ended with the server."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("EASEL_")}
        environment = {
            **kept,
            "EASEL_TOKEN": self.token,
            "EASEL_WARM_TRIALS": "false",
            "EASEL_SANDBOX": "false",
            "EASEL_UNSANDBOXED": UNDERSTOOD,
        }
        folder = self.home / "workers"
        folder.mkdir(exist_ok=True)
        with (folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "easel.cli.main", "worker"),
                    *("--server", server or self.address, "--name", name, "--home", str(folder / name)),
                    *("--vcpu", str(vcpu), "--memory-mb", str(memory_mb), *more),
                ],
                env={**environment, **(variables or {})},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.workers.append(process)
        return process

    def worker_log(self, name: str) -> str:
        return (self.home / "workers" / f"{name}.log").read_text()

    def close(self) -> None:
        for process in self.workers:
            if process.poll() is None:
                process.terminate()
        for process in self.workers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(60)
            process.kill()
            process.wait()
        self.kill_leftovers()
        if self._thread is not None and self._thread.is_alive():
            self.stop()
        self.store.close()

    def kill_leftovers(self) -> None:
        """Workers whose relay was killed outlive it, as they should."""
        for lock in self.home.glob("workers/*/run/worker.lock"):
            with contextlib.suppress(ValueError, ProcessLookupError):
                pid = int(lock.read_text())
                if alive(pid):
                    os.kill(pid, signal.SIGTERM)
                    until(lambda pid=pid: not alive(pid))  # type: ignore[misc]


@contextlib.contextmanager
def serving(home: Path, database_url: str | None = None) -> Iterator[RemoteServer]:
    server = RemoteServer(home, database_url)
    server.start()
    try:
        yield server
    finally:
        server.close()
