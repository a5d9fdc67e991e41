"""Entries that are not chained yet, in files that outlive a server that is killed.

A sheet is a file mapped into memory: an entry is on it before its request is answered, by copying some bytes, without a
call to the system that would hand the interpreter to another thread. The system keeps what was copied when the process
is killed; only a machine that loses its power within the gathering time can lose entries of reads.
"""

from __future__ import annotations

import fcntl
import json
import logging
import mmap
import os
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from easel.records.audit import AuditEntry, AuditOutcome, plain

log = logging.getLogger("easel.audit")
SHEET_BYTES = 262_144
_SUFFIX = ".entries"
_spell = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True).encode
_ours: set[Path] = set()
"""Sheets of this process: the lock that tells whether a sheet's server lives does not hold within one process."""


class Sheet:
    """A file of one server, locked for as long as the server lives. It ends at the first zero byte."""

    def __init__(self, path: Path, size: int = SHEET_BYTES) -> None:
        """Raises OSError where no file can be made."""
        self.path, self._size, self._used = path, size, 0
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        _ours.add(path)
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.posix_fallocate(self._fd, 0, size)  # a full disk must be found out here, not while writing
            self._bytes = mmap.mmap(self._fd, size)
        except OSError:
            _give_up(path, self._fd)
            raise

    def write(self, entry: AuditEntry) -> bool:
        """Puts an entry on the sheet; returns whether there was room."""
        line = _spell(plain(entry)).encode() + b"\n"
        end = self._used + len(line)
        if end >= self._size:
            return False
        self._bytes[self._used : end] = line
        self._used = end
        return True

    def wipe(self) -> None:
        """Forgets its entries: they are chained."""
        self._bytes[0:1] = b"\0"  # from here on it is empty, wherever the server is killed
        self._bytes[: self._used] = bytes(self._used)
        self._used = 0

    def close(self) -> None:
        self._bytes.close()
        _give_up(self.path, self._fd)


@dataclass(frozen=True, slots=True)
class LeftSheet:
    """What a server that died had not chained, or had chained without coming to wipe it."""

    path: Path
    entries: list[AuditEntry]
    _fd: int

    def remove(self) -> None:
        _give_up(self.path, self._fd)

    def leave(self) -> None:
        """Leaves it to whoever looks next."""
        os.close(self._fd)
        _ours.discard(self.path)


class Sheets:
    """The sheets of one server, in a folder that several servers may share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._free: list[Sheet] = []
        self._warned = False

    def take(self) -> Sheet | None:
        """Returns an empty sheet; None where no file can be made, which is logged once."""
        if self._free:
            return self._free.pop()
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return Sheet(self._folder / f"{uuid.uuid4().hex}{_SUFFIX}")
        except OSError as error:
            if not self._warned:
                log.warning(
                    "no file for entries of the audit (%s): a kill now loses reads of a second", error
                )
            self._warned = True
            return None

    def give(self, sheet: Sheet) -> None:
        """Takes back a sheet whose entries are chained."""
        sheet.wipe()
        if self._free:
            sheet.close()
        else:
            self._free.append(sheet)

    def left_behind(self) -> Iterator[LeftSheet]:
        """Yields the sheets of servers that died, each locked until it is removed."""
        for path in sorted(self._folder.glob(f"*{_SUFFIX}")):
            if path in _ours:
                continue
            with suppress(FileNotFoundError):
                fd = os.open(path, os.O_RDWR)
                try:
                    fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    there = path.exists()  # else another server has just dealt with it
                except OSError:
                    there = False  # its server lives
                if not there:
                    os.close(fd)
                    continue
                _ours.add(path)
                yield LeftSheet(path, _read(fd), fd)

    def close(self) -> None:
        for sheet in self._free:
            sheet.close()
        self._free.clear()


def _give_up(path: Path, fd: int) -> None:
    path.unlink(missing_ok=True)
    os.close(fd)
    _ours.discard(path)


def _read(fd: int) -> list[AuditEntry]:
    """Returns a sheet's entries; the last one may have been cut off by the kill."""
    # Opening the file once more would let go of its lock as soon as it is closed.
    content = os.pread(fd, os.fstat(fd).st_size, 0)
    lines = content.split(b"\0", 1)[0].split(b"\n")
    return [entry for line in lines if line and (entry := _parsed(line)) is not None]


def _parsed(line: bytes) -> AuditEntry | None:
    try:
        found: dict[str, Any] = json.loads(line)
        at, outcome = datetime.fromisoformat(found.pop("at")), AuditOutcome(found.pop("outcome"))
        return AuditEntry(at=at, outcome=outcome, **found)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
