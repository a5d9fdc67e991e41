"""The attempts that a worker knows: their folders, their processes, and how far each was reported."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

from easel.records.attempt import EndReason
from easel.run.cgroup import Cgroup, OpenCage
from easel.run.entries import JournalEntry, LoggedLines, OrderTaken, ProcessBorn
from easel.run.journal import alive, begin, read, read_whole
from easel.run.launch import Folders
from easel.run.order import ORDER, Order
from easel.run.warm import WarmProcess


class Phase(Enum):
    WAITING = "waiting"
    RUNNING = "running"
    OVER = "over"


@dataclass(slots=True)
class Attempt:
    """One order on this machine. `sent` is the journal's offset up to which the controller was told.

    `gone` is why an attempt that never had a journal is over; of others the journal says it.
    """

    order: Order
    folders: Folders
    phase: Phase = Phase.WAITING
    since: float = 0.0
    gpus: tuple[int, ...] = ()
    cgroup: Cgroup = field(default_factory=OpenCage)
    pid: int | None = None
    pidfd: int | None = None
    ready: WarmProcess | None = None
    sent: int = 0
    seen: int = 0
    observed: int = 0
    born: ProcessBorn | None = None
    last: bool = False
    gone: tuple[EndReason, str] | None = None
    gone_sent: bool = False
    stop_reason: tuple[EndReason, str] | None = None
    kill_at: float | None = None
    deadline: float | None = None
    heard: float = 0.0
    forgotten: bool = False

    @property
    def key(self) -> str:
        return self.order.key

    def news(self, limit: int = 1 << 20) -> list[JournalEntry]:
        """Entries not yet sent, with the bytes of log lines attached."""
        begin, (entries, self.sent) = self.sent, read(self.folders.journal, self.sent, limit)
        if begin <= self.observed < self.sent:
            self._note(entries)
            self.observed = self.sent
        fresh = (e for e in entries if e.number >= self.seen and not isinstance(e.body, OrderTaken))
        return [self._with_bytes(entry) for entry in fresh]

    def observe(self) -> None:
        """Note what the journal says of the process, whether or not anybody was told."""
        entries, self.observed = read(self.folders.journal, self.observed)
        while entries:
            self._note(entries)
            entries, self.observed = read(self.folders.journal, self.observed)

    def _note(self, entries: Iterable[JournalEntry]) -> None:
        for entry in entries:
            if isinstance(entry.body, ProcessBorn):
                self.born = entry.body
            self.last = self.last or entry.last

    def _with_bytes(self, entry: JournalEntry) -> JournalEntry:
        if not isinstance(entry.body, LoggedLines):
            return entry
        try:
            with self.folders.log.open("rb") as file:
                file.seek(entry.body.offset)
                data = file.read(entry.body.size)
        except (
            FileNotFoundError
        ):  # whoever removed it was told to forget the attempt: nobody waits for its lines
            data = b""
        return replace(entry, body=replace(entry.body, data=data))

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
        self.cgroup.kill()

    def save(self) -> None:
        """What a worker that starts after a crash must know. Secrets stay in memory."""
        begin(self.folders.journal, ORDER.dump_python(self.order.without_secrets(), mode="json"), self.gpus)

    def remove(self) -> None:
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None
        self.cgroup.remove()
        self.folders.remove()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def found(root: Path) -> Iterator[Attempt]:
    """The attempts that an earlier worker left, alive or not. What has no journal any more is removed."""
    for left in [path for path in root.glob("*") if path.is_dir()]:
        if not Folders(left).journal.exists():
            Folders(left).remove()
    for journal in sorted(root.glob("*.journal")):
        folders = Folders(journal.with_suffix(""))
        entries, _ = read_whole(journal)
        first = entries[0].body if entries else None
        if not isinstance(first, OrderTaken):  # a crash while the first line was written: it never began
            folders.remove()
            continue
        attempt = Attempt(ORDER.validate_python(first.order), folders, gpus=tuple(first.gpus))
        attempt.observe()
        if attempt.born is not None and alive(attempt.born):
            attempt.pid, attempt.phase = attempt.born.pid, Phase.RUNNING
        else:
            attempt.phase = Phase.OVER
        yield attempt
