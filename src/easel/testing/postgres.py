"""A real PostgreSQL for tests: in a temporary folder, on a free port, as its own user where we are root."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from easel.testing.ending import end_orderly_when_told
from easel.testing.ports import free_port


class Postgres:
    """A server that can be stopped and started again, as a machine's would be."""

    def __init__(self, binaries: Path, folder: Path, port: int) -> None:
        self._binaries, self._folder, self.port = binaries, folder, port

    def start(self) -> None:
        options = (
            f"-c port={self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= "
            "-c max_connections=200 -c shared_buffers=256MB "
            "-c fsync=off"  # survives a killed process, not a power cut: enough for tests, and far faster
        )
        log = self._folder / "log"
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-w", "-l", str(log), "-o", options, "start")

    def stop(self, how: str = "immediate") -> None:
        """`fast` writes all to disk first, so that the next start need not recover."""
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-m", how, "-w", "stop")

    @property
    def pid(self) -> int:
        """Returns the process that all others of the server belong to."""
        return int((self._folder / "data" / "postmaster.pid").read_text().split()[0])

    def initialise(self) -> None:
        self._run("initdb", "-D", str(self._folder / "data"), "-U", "easel", "-A", "trust", "-E", "UTF8")

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://easel@127.0.0.1:{self.port}/{database}"

    def create(self, database: str, template: str = "template1") -> str:
        """A fresh database, or a copy of a template that nobody is connected to; returns its address."""
        where = ("-h", "127.0.0.1", "-p", str(self.port), "-U", "easel", "-T", template)
        self._run("createdb", *where, database)
        return self.url(database)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._binaries / program), *arguments]
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            command = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *command]
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=self._folder, check=False, timeout=60
        )
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed: {done.stdout[-500:]}{done.stderr[-500:]}")


def find_binaries() -> Path | None:
    """Where initdb lives: on the PATH, or where Debian puts each major version."""
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return versions[-1].parent if versions else None


@contextlib.contextmanager
def running(kept: Path | None = None) -> Iterator[Postgres]:
    """Start a server; stop it and remove its folder at the end, unless it is to be `kept` for the next time."""
    binaries = find_binaries()
    if binaries is None:
        raise RuntimeError("no PostgreSQL here: install Debian's package `postgresql`")
    end_orderly_when_told()
    folder = kept or Path(tempfile.mkdtemp(prefix="easel-pg-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
        server = Postgres(binaries, folder, free_port())
        if not (folder / "data").exists():
            server.initialise()
        server.start()
        try:
            yield server
        finally:
            with contextlib.suppress(RuntimeError):
                server.stop("fast" if kept else "immediate")
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)
