"""The diary of one attempt: a file of JSON lines that only grows.

The agent writes here and nowhere else, so it needs no server; the worker reads from any offset, as often as
it likes. A line is complete when it ends in a newline: half a line (a crash, a full disk) is not there yet.

The first line is the worker's: the order itself. Entries are numbered from 0 without gaps, so that whoever reads
them can tell that one is missing; the last is `AttemptDone`, `AttemptEnded` or `AttemptLost`. Their times come from
one reading of the wall clock and then from the monotonic one: a clock that is set does not move them apart.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from easel.clock import Clock
from easel.run.entries import (
    ORDER_NUMBER,
    EntryBody,
    JournalEntry,
    OrderTaken,
    ProcessBorn,
    read_line,
    write_line,
)

BALLAST_BYTES = 512 * 1024


class Journal:
    """The writing end. Numbers its entries, so that a reader can tell what it has seen."""

    def __init__(
        self, path: Path, clock: Clock, wake_fd: int | None = None, after: JournalEntry | None = None
    ) -> None:
        """`after` is the last entry that another process wrote: this one goes on from it."""
        self._clock = clock
        self._wake_fd = wake_fd
        self.next = 0 if after is None else after.number + 1
        now = clock.monotonic()
        if after is not None and after.monotonic is not None and after.monotonic <= now:
            self._began = after.at - after.monotonic
        else:
            self._began = clock.now().timestamp() - now
        self._lock = threading.Lock()
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._ballast = path.with_suffix(".ballast")

    def keep_ballast(self) -> None:
        """Set room aside, so that the end can be written even when the job fills the disk."""
        self._ballast.write_bytes(b"\0" * BALLAST_BYTES)

    def make_room(self) -> bool:
        """Give half of the ballast for the log; the other half stays for the last entries."""
        try:
            if self._ballast.stat().st_size <= BALLAST_BYTES // 2:
                return False
            os.truncate(self._ballast, BALLAST_BYTES // 2)
        except OSError:
            return False
        return True

    def append(self, *bodies: EntryBody, wake: bool = True) -> None:
        with self._lock:
            now = self._clock.monotonic()
            self._write_entries(bodies, self._began + now, now)
        if wake and self._wake_fd is not None:
            try:
                os.write(self._wake_fd, b"\n")
            except OSError:  # nobody listens now; the file is read later
                self._wake_fd = None

    def append_as_of(self, known: JournalEntry, body: EntryBody) -> None:
        """Write an entry with the time of an earlier one: nothing is known of what came between."""
        with self._lock:
            self._write_entries([body], known.at, known.monotonic)

    def _write_entries(self, bodies: Sequence[EntryBody], at: float, monotonic: float | None) -> None:
        numbered = [JournalEntry(self.next + i, at, body, monotonic) for i, body in enumerate(bodies)]
        self.next += len(numbered)
        self._write(b"".join(write_line(entry) for entry in numbered))

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._fd, view) :]
            except OSError:
                if self._ballast.exists():
                    self._ballast.unlink(missing_ok=True)
                    continue
                self._clock.sleep(1.0)  # the disk is full and only somebody else can make room

    def close(self) -> None:
        os.close(self._fd)


def read(path: Path, offset: int, limit: int = 1 << 20) -> tuple[list[JournalEntry], int]:
    """The complete entries from `offset` on, and the offset behind them."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(limit)
    except FileNotFoundError:
        return [], offset
    end = data.rfind(b"\n") + 1
    if end == 0 and len(data) == limit:
        return read(path, offset, limit * 4)
    return [read_line(line) for line in data[:end].split(b"\n") if line], offset + end


def read_whole(path: Path) -> tuple[list[JournalEntry], int]:
    """All complete entries, and the offset behind them."""
    entries, offset = read(path, 0, 1 << 24)
    while True:
        more, offset = read(path, offset, 1 << 24)
        if not more:
            return entries, offset
        entries += more


def begin(path: Path, order: Any, gpus: tuple[int, ...] = ()) -> None:
    """Write the first line. Replaces whatever a crash left half-written."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, write_line(JournalEntry(ORDER_NUMBER, 0.0, OrderTaken(order, gpus))))
    finally:
        os.close(fd)


def write_end(path: Path, clock: Clock, body: EntryBody, *, now: bool = True) -> None:
    """Write the last entry for a process that is dead: behind its last whole one, half a line of it is dropped.

    Unless `now`, the entry bears the time of the one before it: that is the last thing known of the attempt.
    """
    if not path.exists():  # somebody removed the whole home
        return
    entries, end = read_whole(path)
    last = entries[-1] if entries else None
    if path.stat().st_size > end:
        os.truncate(path, end)
    journal = Journal(path, clock, after=last)
    if now or last is None or last.number == ORDER_NUMBER:
        journal.append(body)
    else:
        journal.append_as_of(last, body)
    journal.close()


def born(pid: int) -> ProcessBorn:
    """What recognises the process `pid` later."""
    return ProcessBorn(pid, start_time(pid), boot_id())


def start_time(pid: int) -> int | None:
    """Clock ticks since boot at which the process began, or None when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat[stat.rfind(b")") + 2 :].split()
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def alive(process: ProcessBorn) -> bool:
    """Whether the process that wrote this entry still runs."""
    return bool(process.boot == boot_id() and start_time(process.pid) == process.start)
