"""A real `easel up` in a process of its own, which tests may kill and start again."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil

from easel.sdk.client import Client
from easel.testing import server_fork
from easel.testing.databases import new_sqlite
from easel.testing.ending import end_orderly_when_told
from easel.testing.server_fork import ForkedServer, Streams, may_fork


class ServerProcess:
    """`easel up` on a folder. The port stays the same over restarts, as a deployment's does."""

    def __init__(
        self,
        folder: Path,
        database_url: str | None = None,
        command: str = "up",
        first_start: bool = False,
        **settings: str,
    ) -> None:
        """`command` is `up`, or `serve` for the API alone.

        Without `database_url` the server finds a migrated, empty database, and it is forked from a process that has
        imported it. With `first_start` it finds no database, and Python is started as people start it.
        """
        self.folder, self._command = folder, command
        self._migrated = database_url is None and not first_start
        self._first_start = first_start
        self.port = 0
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("EASEL_")},
            "EASEL_HOME": str(folder / "home"),
            "EASEL_WARM_TRIALS": "false",  # seconds of imports that few tests need
            **{f"EASEL_{name.upper()}": value for name, value in settings.items()},
        }
        if database_url:
            self.environment["EASEL_DATABASE_URL"] = database_url
        self._process: subprocess.Popen[bytes] | ForkedServer | None = None
        self._clients: list[Client] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def admin_token(self) -> str:
        return (self.folder / "admin-token").read_text().strip()

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def client(self, token: str | None = None, project: str | None = None) -> Client:
        """A client that is closed when the server is done with.

        More patient than usual: on a busy machine a server that was killed takes long to come back.
        """
        made = Client(self.address, token or self.admin_token, project, attempts=12)
        self._clients.append(made)
        return made

    def close_clients(self) -> None:
        for client in self._clients:
            client.close()

    def start(self) -> None:
        if self._migrated:
            home = Path(self.environment["EASEL_HOME"])
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
            new_sqlite(home / "easel.sqlite")
        arguments = [
            self._command,
            "--port",
            str(self.port),
            "--token-file",
            str(self.folder / "admin-token"),
        ]
        log = self.folder / "log"
        if self._is_forked():
            log.write_bytes(b"")
            self._process = server_fork.start(arguments, self.environment, Streams(log, log))
        else:
            with log.open("wb") as out:
                self._process = subprocess.Popen(  # its own session: killing it kills what it started
                    [sys.executable, "-m", "easel.cli.main", *arguments],
                    env=self.environment,
                    stdout=out,
                    stderr=out,
                    start_new_session=True,
                )
        self._wait_until_ready()

    def _is_forked(self) -> bool:
        """Whether it may be forked; a first start is one as people make it."""
        return may_fork(self.environment) and not self._first_start

    def kill(self) -> None:
        """kill -9, the server and everything it started."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    @property
    def worker_pid(self) -> int | None:
        """The worker outlives a killed server, so that jobs do."""
        try:
            return int((self.folder / "home" / "run" / "worker.lock").read_text())
        except (FileNotFoundError, ValueError):
            return None

    def end_worker(self) -> None:
        """SIGTERM to the worker, which ends every job; returns when it is gone."""
        pid = self.worker_pid
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
                while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                    time.sleep(0.02)

    def stop(self) -> int:
        """SIGTERM; returns the exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(timeout=180)

    @property
    def started(self) -> bool:
        return self._process is not None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise RuntimeError(f"the server did not start:\n{self.log}")
            greeting = re.search(r"^Easel is at \S+:(\d+)$", self.log, re.MULTILINE)
            if greeting:
                self.port = int(greeting[1])
                with contextlib.suppress(httpx.TransportError):
                    if httpx.get(f"{self.address}/readyz", timeout=2).status_code == 200:
                        return
            time.sleep(0.02)
        self.kill()
        raise RuntimeError(f"the server was not ready within three minutes:\n{self.log}")


def running(
    folder: Path, database_url: str | None = None, **settings: str
) -> contextlib.AbstractContextManager[ServerProcess]:
    """Return a server of its own under `folder`, started on entering and ended on leaving."""
    return started(ServerProcess(folder, database_url, first_start=False, **settings))


@contextlib.contextmanager
def started(server: ServerProcess) -> Iterator[ServerProcess]:
    end_orderly_when_told()
    try:
        server.start()
        yield server
    finally:
        if server.started:
            server.kill()
            server.end_worker()
        server.close_clients()
