"""The diary of one attempt: a file of JSON lines that only grows.

The agent writes here and nowhere else, so it needs no server; the worker reads from any offset, as often as
it likes. A line is complete when it ends in a newline: half a line (a crash, a full disk) is not there yet.

The first line is the worker's: the order itself, under `order`. Kinds of entry (`k`): `born` pid, start,
boot; `reached` state; `usage`; `log` offset, size, stream, lines; `metrics`; `tags`; `progress`; `output`
files; `result`; and the last one: `done` or `ended`.
"""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

from easel.clock import Clock

Entry = dict[str, Any]
LAST = frozenset({"done", "ended"})
BALLAST_BYTES = 512 * 1024


class Journal:
    """The writing end. Numbers its entries, so that a reader can tell what it has seen."""

    def __init__(self, path: Path, clock: Clock, wake_fd: int | None = None) -> None:
        self._clock = clock
        self._wake_fd = wake_fd
        self._seq = 0
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

    def append(self, *entries: Entry, wake: bool = True) -> None:
        at = self._clock.now().timestamp()
        with self._lock:
            lines = []
            for entry in entries:
                lines.append(json.dumps({"n": self._seq, "at": at, **entry}, separators=(",", ":")))
                self._seq += 1
            self._write(("\n".join(lines) + "\n").encode())
        if wake and self._wake_fd is not None:
            try:
                os.write(self._wake_fd, b"\n")
            except OSError:  # nobody listens now; the file is read later
                self._wake_fd = None

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


def read(path: Path, offset: int, limit: int = 1 << 20) -> tuple[list[Entry], int]:
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
    return [json.loads(line) for line in data[:end].splitlines() if line], offset + end


def begin(path: Path, order: Any) -> None:
    """Write the first line. Replaces whatever a crash left half-written."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(
            fd, json.dumps({"n": -1, "k": "order", "order": order}, separators=(",", ":")).encode() + b"\n"
        )
    finally:
        os.close(fd)


def born(pid: int) -> Entry:
    """How to recognise the process again: pids are reused, a pid with its start time and boot is not."""
    return {"k": "born", "pid": pid, "start": start_time(pid), "boot": boot_id()}


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


def alive(entry: Entry) -> bool:
    """Whether the process that wrote this `born` entry still runs."""
    return bool(entry["boot"] == boot_id() and start_time(entry["pid"]) == entry["start"])
