"""The processes of an installation, started again whenever they die, as a service manager would."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from easel.run.entries import ProcessBorn
from easel.run.journal import alive, read
from easel.run.tree import descendants


@dataclass
class Part:
    """One process that belongs to the installation: its kind, its command line, its variables."""

    name: str
    kind: str
    words: Sequence[str]
    variables: Mapping[str, str]
    log: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("EASEL_")}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "easel.cli.main", *self.words],
                env={**kept, **self.variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )


@dataclass
class Installation:
    """`homes` are the folders in which workers keep their attempts; `addresses` where servers answer."""

    folder: Path
    database_url: str
    addresses: list[str]
    token_file: Path
    parts: list[Part] = field(default_factory=list)
    homes: list[Path] = field(default_factory=list)
    engine_starts_workers: bool = False
    grown_up_s: float = 5.0
    """A process that has yet to come up acknowledges nothing: it is killed later."""
    _looked: float = 0.0
    _stopping: threading.Event = field(default_factory=threading.Event)
    _keeper: threading.Thread | None = None

    def start(self) -> None:
        for part in self.parts:
            part.start()
        self._keeper = threading.Thread(target=self._keep_up, name="service-manager", daemon=True)
        self._keeper.start()

    def add(self, part: Part) -> None:
        part.start()
        self.parts.append(part)

    def _keep_up(self) -> None:
        while not self._stopping.wait(0.1):
            for part in self.parts:
                if part.process is not None and part.process.poll() is not None:
                    part.start()

    def stop(self) -> None:
        """In order, and then whatever is left of the workers."""
        self._stopping.set()
        if self._keeper is not None:
            self._keeper.join()
        for kind in ("worker", "controller", "server"):
            some = [part.process for part in self.parts if part.kind == kind and part.process is not None]
            for process in some:
                process.terminate()
            for process in some:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(60)
                process.kill()
                process.wait()
        if self.engine_starts_workers:  # first the relays: they would start their workers again
            _end_all(lambda: list(engine_workers(self.addresses)))
        _end_all(lambda: [pid for home in self.attempt_homes() if (pid := worker_pid(home)) is not None])

    def attempt_homes(self) -> list[Path]:
        """Also those of workers that an engine started, of those that ended too."""
        if self.engine_starts_workers and time.monotonic() > self._looked + 0.5:
            self._looked = time.monotonic()
            self.homes += sorted({*engine_workers(self.addresses).values()} - {*self.homes})
        return list(self.homes)

    def victims(self, kind: str) -> list[int]:
        """Process ids of this kind that live now."""
        if kind == "relay" and self.engine_starts_workers:
            return [pid for pid in engine_workers(self.addresses) if _age_s(pid) > self.grown_up_s]
        if kind in ("server", "controller", "relay"):
            wanted = "worker" if kind == "relay" else kind
            running = (p.process for p in self.parts if p.kind == wanted and p.process is not None)
            living = [process.pid for process in running if process.poll() is None]
            return [pid for pid in living if _age_s(pid) > self.grown_up_s]
        if kind == "worker":
            found = (pid for home in self.attempt_homes() if (pid := worker_pid(home)) is not None)
            return [pid for pid in found if _age_s(pid) > self.grown_up_s]
        if kind == "fork server":
            workers = [pid for home in self.attempt_homes() if (pid := worker_pid(home)) is not None]
            return [child for pid in workers for child in _children(pid, "easel.run.fork_server")]
        agents = [pid for home in self.attempt_homes() for pid in agent_pids(home)]
        if kind == "agent":
            return agents
        return [child for pid in agents for child in _children(pid, "bwrap")]


def _end_all(living: Callable[[], list[int]]) -> None:
    """Tells each of them once to end, and waits until none is left."""
    told: set[int] = set()
    limit = time.monotonic() + 60
    while (found := living()) and time.monotonic() < limit:
        for pid in set(found) - told:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        told.update(found)
        time.sleep(0.05)


KINDS = {
    "server": 2.0,
    "controller": 4.0,
    "relay": 2.0,
    "worker": 1.0,
    "fork server": 1.0,
    "agent": 1.0,
    "sandbox": 1.0,
}
"""What is killed, and how often against the others."""


def engine_workers(addresses: Sequence[str]) -> dict[int, Path]:
    """The workers that an engine started for one of these servers, and the homes that it gave them."""
    found: dict[int, Path] = {}
    for process in psutil.process_iter(["pid", "cmdline"]):
        words = process.info["cmdline"] or []
        if (
            "--with-parent" in words
            and "--server" in words
            and words[words.index("--server") + 1] in addresses
        ):
            found[process.pid] = Path(words[words.index("--home") + 1])
    return found


def worker_pid(home: Path) -> int | None:
    """The worker that lives there. A number alone is not enough: it may be somebody else's by now."""
    try:
        process = psutil.Process(int((home / "run" / "worker.lock").read_text()))
        ours = process.status() != psutil.STATUS_ZOMBIE and any(
            str(home) in word for word in process.cmdline()
        )
        return process.pid if ours else None
    except (FileNotFoundError, ValueError, psutil.NoSuchProcess, psutil.AccessDenied):
        return None


def agent_pids(home: Path) -> Iterator[int]:
    for journal in (home / "run" / "attempts").glob("*.journal"):
        entries, _ = read(journal, 0, 1 << 16)
        for entry in entries:
            if isinstance(entry.body, ProcessBorn) and alive(entry.body):
                yield entry.body.pid


def _age_s(pid: int) -> float:
    try:
        return time.time() - float(psutil.Process(pid).create_time())
    except psutil.NoSuchProcess:
        return 0.0


def _children(pid: int, words: str) -> list[int]:
    named: list[int] = []
    for each in descendants(pid):
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if any(words in word for word in psutil.Process(each).cmdline()):
                named.append(each)
    return named


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
