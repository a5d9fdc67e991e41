"""An installation of two servers, two controllers and a worker behind a proxy, replaced part by part by a next release.

The next release is this source with one more migration that adds a table and a column, and with another version.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import urlsplit

import easel
from easel.sdk.client import Client
from easel.store.engine import Store
from easel.store.leases import stand
from easel.store.migrate import head
from easel.testing.ending import end_orderly_when_told
from easel.testing.engine import until
from easel.testing.proxy import ReverseProxy, proxying
from easel.testing.server import ServerProcess

NEXT_VERSION, NEXT_SCHEMA = "99.0.0", "9999"
STOP_DELAY_S = 0.5
MIGRATION = f"""
import sqlalchemy as sa
from alembic import op

revision = "{NEXT_SCHEMA}"
down_revision = "{head()}"


def upgrade() -> None:
    op.create_table("of_the_next", sa.Column("id", sa.Integer, primary_key=True))
    op.add_column("jobs", sa.Column("of_the_next", sa.Text))
"""


def make_next_release(folder: Path) -> Path:
    """Lays the next release out in `folder`; returns what PYTHONPATH must name to run it."""
    source = Path(easel.__file__).parent
    for file in source.rglob("*"):
        if file.is_dir() or {"static", "site"} & set(file.relative_to(source).parts):
            continue
        target = folder / "easel" / file.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(file)
    version = folder / "easel" / "version.py"
    version.unlink()
    version.write_text(f'__version__ = "{NEXT_VERSION}"\n')
    versions = folder / "easel" / "store" / "migrations" / "versions"
    (versions / f"{NEXT_SCHEMA}_next.py").write_text(MIGRATION)
    return folder


@dataclass
class Traffic:
    """Requests at a steady rate through the proxy, and what became of them. None is tried twice, and all that were due
    are sent, late where the servers do not keep up."""

    address: str
    token: str
    project: str
    per_second: float = 20.0
    clients: int = 2
    answered: int = 0
    failures: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    """How long each answer took, from the moment at which the request was due."""
    behind: float = 0.0
    """How many seconds after the end of the flow the last request was answered that had been due before it."""
    _stopping: threading.Event = field(default_factory=threading.Event)
    _ended: float = float("inf")

    def _request(self, turn: int) -> tuple[str, str, object]:
        jobs = f"/api/v1/projects/{self.project}/jobs"
        if turn % 10 == 0:
            return "POST", jobs, {"name": "waits", "run": {"kind": "entry", "target": "m:f"}}
        return ("GET", "/api/v1/projects", None) if turn % 3 == 0 else ("GET", jobs, None)

    def _flow(self, number: int) -> None:
        every = self.clients / self.per_second
        due = time.monotonic() + every * number / self.clients
        turn = number
        while not self._stopping.wait(max(0.0, due - time.monotonic())) or due <= self._ended:
            method, path, body = self._request(turn)
            try:
                status, text = self._send(method, path, body)
            except (OSError, HTTPException) as error:
                self.failures.append(f"{method} {path}: {type(error).__name__} {error}")
            else:
                if 200 <= status < 300:
                    self.answered += 1
                    self.seconds.append(time.monotonic() - due)
                else:
                    self.failures.append(f"{method} {path}: {status} {text[:300]!r}")
            turn += 1
            due += every

    def _send(self, method: str, path: str, body: object) -> tuple[int, bytes]:
        """Sends a request on a connection of its own; returns the status and the answer. The clients share the machine
        with what they measure, so they are as light as Python's own library lets them be."""
        place = urlsplit(self.address)
        http = HTTPConnection(str(place.hostname), place.port, timeout=60)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        try:
            http.request(method, path, None if body is None else json.dumps(body), headers)
            answer = http.getresponse()
            return answer.status, answer.read()
        finally:
            http.close()

    @contextlib.contextmanager
    def flowing(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._flow, args=(n,), daemon=True) for n in range(self.clients)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._ended = time.monotonic()
            self._stopping.set()
            for thread in threads:
                thread.join(300)
            self.behind = time.monotonic() - self._ended


class RollingInstallation:
    """Two servers and two controllers over one PostgreSQL, and one worker that joins through the proxy."""

    def __init__(self, folder: Path, database_url: str, next_release: Path, vcpu: int = 2) -> None:
        self.folder, self._url, self._next, self._vcpu = folder, database_url, next_release, vcpu
        self.store = Store(database_url)
        self.servers = [self._server(name) for name in ("one", "two")]
        self.controllers: list[subprocess.Popen[bytes]] = []
        self._workers: list[subprocess.Popen[bytes]] = []
        self._ending = contextlib.ExitStack()
        self.proxy: ReverseProxy

    def start(self) -> None:
        self.servers[0].start()
        self.servers[1].start()
        self.proxy = self._ending.enter_context(proxying([server.port for server in self.servers]))
        until(lambda: len(self.proxy.ready) == len(self.servers))
        self.controllers = [self._run("controller", self._variables()) for _ in self.servers]
        with Client(self.proxy.address, self.token) as root:
            token = str(root.worker_tokens.create("lab").secret)
        joining = ("--server", self.proxy.address, "--name", "box", "--home", str(self.folder / "box"))
        room = ("--vcpu", str(self._vcpu), "--memory-mb", str(512 * self._vcpu))
        variables = {"EASEL_TOKEN": token, "EASEL_SANDBOX": "false", "EASEL_UNSANDBOXED": "I understand"}
        self._workers.append(self._run("worker", {**self._plain(), **variables}, *joining, *room))

    @property
    def token(self) -> str:
        return self.servers[0].admin_token

    def leader(self) -> str | None:
        """The controller that acts, by its process."""
        with self.store.read() as tx:
            found = stand(tx, "controller")
        return found[0].split(":")[1] if found is not None and found[2] > self.store.clock.now() else None

    def upgrade_server(self, number: int) -> None:
        """Stops a server as `easel serve` is stopped, and starts the next release in its place."""
        server = self.servers[number]
        server.stop()
        server.environment["PYTHONPATH"] = self._path()
        server.start()
        until(lambda: server.port in self.proxy.ready)

    def upgrade_controllers(self) -> None:
        """The one that stands by first, then the one that acts."""
        until(lambda: self.leader() is not None)
        for process in sorted(self.controllers, key=lambda each: str(each.pid) == self.leader()):
            fresh = self._run("controller", {**self._variables(), "PYTHONPATH": self._path()})
            process.terminate()
            process.wait(60)
            self.controllers = [each for each in self.controllers if each is not process] + [fresh]
        pids = {str(each.pid) for each in self.controllers}
        until(lambda: self.leader() in pids)

    def close(self) -> None:
        for process in [*self.controllers, *self._workers]:
            process.terminate()
        for process in [*self.controllers, *self._workers]:
            process.wait(60)
        for server in self.servers:
            if server.started:
                server.kill()
            server.close_clients()
        self._ending.close()
        self.store.close()

    def _server(self, name: str) -> ServerProcess:
        folder = self.folder / name
        folder.mkdir(parents=True)
        return ServerProcess(
            folder,
            self._url,
            command="serve",
            home=str(self.folder / "home"),
            executor="remote",
            stop_delay_s=str(STOP_DELAY_S),
        )

    def _plain(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("EASEL_")}
        return {**kept, "EASEL_WARM_TRIALS": "false"}

    def _variables(self) -> dict[str, str]:
        return {
            **self._plain(),
            "EASEL_HOME": str(self.folder / "home"),
            "EASEL_DATABASE_URL": self._url,
            "EASEL_EXECUTOR": "remote",
            "EASEL_MAX_ACTIVE_JOBS": "1000",
        }

    def _path(self) -> str:
        return os.pathsep.join(filter(None, [str(self._next), os.environ.get("PYTHONPATH", "")]))

    def _run(self, command: str, variables: dict[str, str], *more: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{command}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "easel.cli.main", command, *more],
                env=variables,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )


@contextlib.contextmanager
def installed(folder: Path, database_url: str, vcpu: int = 2) -> Iterator[RollingInstallation]:
    end_orderly_when_told()
    made = RollingInstallation(folder, database_url, make_next_release(folder / "next"), vcpu)
    try:
        made.start()
        yield made
    finally:
        made.close()
