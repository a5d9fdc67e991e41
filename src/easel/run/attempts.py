"""The attempts that a worker knows: their folders, their processes, and how far each was reported."""

from __future__ import annotations

import base64
import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from easel.run.cage import Cage, OpenCage
from easel.run.journal import LAST, Entry, alive, begin, read
from easel.run.launch import Folders
from easel.run.order import ORDER, Order
from easel.run.warm import Ready


class Phase(Enum):
    WAITING = "waiting"
    RUNNING = "running"
    OVER = "over"


@dataclass(slots=True)
class Attempt:
    """One order on this machine. `sent` is the journal's offset up to which the controller was told."""

    order: Order
    folders: Folders
    phase: Phase = Phase.WAITING
    since: float = 0.0
    gpus: tuple[int, ...] = ()
    cage: Cage = field(default_factory=OpenCage)
    pid: int | None = None
    pidfd: int | None = None
    ready: Ready | None = None
    sent: int = 0
    seen: int = 0
    born: Entry | None = None
    last: bool = False
    gone: str | None = None
    gone_sent: bool = False
    stop_reason: str | None = None
    kill_at: float | None = None
    deadline: float | None = None
    heard: float = 0.0
    forgotten: bool = False

    @property
    def key(self) -> str:
        return self.order.key

    def news(self, limit: int = 1 << 20) -> list[Entry]:
        """Entries not yet sent, with the bytes of log lines attached. Notes what they say of the process."""
        entries, self.sent = read(self.folders.journal, self.sent, limit)
        fresh: list[Entry] = []
        for entry in entries:
            if entry["k"] == "born":
                self.born = entry
            self.last = self.last or entry["k"] in LAST
            if entry["n"] >= self.seen and entry["k"] != "order":
                fresh.append(self._with_bytes(entry) if entry["k"] == "log" else entry)
        return fresh

    def _with_bytes(self, entry: Entry) -> Entry:
        with self.folders.log.open("rb") as file:
            file.seek(entry["o"])
            return {**entry, "data": base64.b64encode(file.read(entry["s"])).decode()}

    def rewind(self, seen: int) -> None:
        """A controller that knows the first `seen` entries asks for the rest."""
        self.sent, self.seen, self.gone_sent = 0, seen, False

    @property
    def told(self) -> bool:
        """Whether it is over and all of it was sent."""
        if self.phase is not Phase.OVER:
            return False
        return self.gone_sent or (self.last and self.sent == _size(self.folders.journal))

    def signal(self, number: int) -> None:
        if self.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End everything of it now. The agent first: it would only notice and write."""
        if self.ready is not None:
            self.ready.kill()
            return
        self.signal(signal.SIGKILL)
        self.cage.kill()

    def save(self) -> None:
        """What a worker that starts after a crash must know. Secrets stay in memory."""
        begin(self.folders.journal, [ORDER.dump_python(self.order.without_secrets(), mode="json"), self.gpus])

    def remove(self) -> None:
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None
        self.cage.remove()
        self.folders.remove()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def found(root: Path) -> Iterator[Attempt]:
    """The attempts that an earlier worker left, alive or not."""
    for journal in sorted(root.glob("*.journal")):
        folders = Folders(journal.with_suffix(""))
        entries, _ = read(journal, 0, 1 << 24)
        if not entries:  # a crash while the first line was written: it never began
            folders.remove()
            continue
        body, gpus = entries[0]["order"]
        attempt = Attempt(ORDER.validate_python(body), folders, gpus=tuple(gpus))
        attempt.born = next((entry for entry in entries if entry["k"] == "born"), None)
        attempt.last = any(entry["k"] in LAST for entry in entries)
        if attempt.born is not None and alive(attempt.born):
            attempt.pid, attempt.phase = attempt.born["pid"], Phase.RUNNING
        else:
            attempt.phase = Phase.OVER
        yield attempt
