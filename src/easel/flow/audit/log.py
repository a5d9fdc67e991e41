"""Writes the audit beside the requests: entries are gathered and chained in batches by a thread of its own.

A change does not rely on that: its entry is committed with the change (`store/noting.py`). The entry of a read is on a
sheet (`sheets.py`) before the read is answered. Whatever a server that died had not chained yet is chained by the next
one.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from easel.errors import EaselError
from easel.flow.audit.sheets import LeftSheet, Sheet, Sheets
from easel.flow.audit.syslog import AuditSender, message
from easel.records.audit import AuditEntry, AuditOutcome
from easel.store import audit
from easel.store.engine import Store, Tx

log = logging.getLogger("easel.audit")
GATHER_S = 1.0
"""How long entries are gathered before they are written: each writing costs a commit, however many there are."""
MOST = 100_000
"""Entries that may wait while the database is away; reads beyond that are counted, and the count is an entry."""
ORPHANED_AFTER = timedelta(seconds=60)
_LOOK_EVERY = timedelta(seconds=15)
_HOUSEKEEPING_EVERY = timedelta(minutes=10)
_SEND = 500
_QUESTION = "/infer"
"""How routes end that ask a model: they change nothing, and come a thousand times a second."""


@dataclass(slots=True)
class _Batch:
    """Entries with the keys under which changes committed them, and the sheet that holds those without one."""

    taken: list[tuple[AuditEntry, str | None]] = field(default_factory=list)
    sheet: Sheet | None = None
    sheetless: bool = False
    """No sheet can be had just now."""


class AuditLog:
    """One a server. The thread starts with the first entry."""

    def __init__(
        self,
        store: Store,
        *,
        keep: timedelta | None = None,
        sender: AuditSender | None = None,
        sheets: Sheets | None = None,
    ) -> None:
        self._store, self._keep, self._sender, self._sheets = store, keep, sender, sheets
        self._open = _Batch(sheetless=sheets is None)
        self._held: list[_Batch] = []
        """Full ones, and those that could not be written yet."""
        self._count = 0
        self._dropped = 0
        self._taking = threading.Lock()
        self._wake = threading.Event()
        self._flushing = threading.Lock()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._looked_at: datetime | None = None
        self._tidied_at = None if keep is None else store.clock.now()

    def record(self, entry: AuditEntry, pending: str | None) -> None:
        """Take an entry; `pending` is the key under which a change committed it already."""
        self._take(entry, pending)
        if not self._wake.is_set():
            self._wake.set()
        if self._thread is None:
            self._start()

    def _take(self, entry: AuditEntry, pending: str | None) -> None:
        with self._taking:
            if self._count >= MOST and pending is None:
                self._dropped += 1
                return
            self._count += 1
            if pending is None:
                self._put_on_sheet(entry)
            self._open.taken.append((entry, pending))

    def _put_on_sheet(self, entry: AuditEntry) -> None:
        batch = self._open
        if batch.sheet is not None and batch.sheet.write(entry):
            return
        if batch.sheet is not None:  # it is full: what comes is another batch
            self._begin_batch()
            batch = self._open
        if not batch.sheetless and self._sheets is not None:
            batch.sheet = self._sheets.take()
            batch.sheetless = batch.sheet is None
        if batch.sheet is not None:
            batch.sheet.write(entry)

    def _begin_batch(self) -> None:
        if self._open.taken:
            self._held.append(self._open)
        self._open = _Batch(sheetless=self._sheets is None)

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        pause = threading.Event()
        while not self._stopping:
            if self._wake.wait(timeout=30):
                pause.wait(GATHER_S)
            self._wake.clear()
            try:
                self.flush()
                self._tidy()
            except EaselError as error:
                log.warning("the audit cannot be written now and waits: %s", error.message)
                pause.wait(2.0)
                self._wake.set()

    def flush(self) -> None:
        """Chain everything that was recorded until now."""
        with self._flushing:
            with self._taking:
                self._begin_batch()
                batches = list(self._held)
                dropped, self._dropped = self._dropped, 0
            left: list[LeftSheet] = []
            try:
                with self._store.write() as tx:
                    entries = [entry for batch in batches for entry in merged(batch.taken)]
                    keys = [key for batch in batches for _, key in batch.taken if key is not None]
                    if dropped:
                        entries.append(_about_itself(self._store, "audit.dropped", dropped))
                    if self._is_time_to_look(tx):
                        known = set(keys)
                        orphans = audit.orphans(tx, tx.now - ORPHANED_AFTER)
                        late = [(key, entry) for key, entry in orphans if key not in known]
                        entries += [entry for _, entry in late]
                        keys += [key for key, _ in late]
                        left += self._sheets.left_behind() if self._sheets is not None else ()
                        entries += self._of_dead_servers(tx, left)
                    if entries:
                        audit.append(tx, entries, keys)
            except BaseException:
                with self._taking:
                    self._dropped += dropped
                for sheet in left:
                    sheet.leave()
                raise
            self._let_go(batches)
            for sheet in left:
                sheet.remove()
        self._send()

    def _let_go(self, batches: list[_Batch]) -> None:
        """Forgets batches that are chained."""
        with self._taking:
            self._held = self._held[len(batches) :]
            self._count -= sum(len(batch.taken) for batch in batches)
        for batch in batches:
            if batch.sheet is not None and self._sheets is not None:
                self._sheets.give(batch.sheet)

    def _is_time_to_look(self, tx: Tx) -> bool:
        """Whether servers that died can have left something since the last look."""
        if self._looked_at is not None and tx.now - self._looked_at < _LOOK_EVERY:
            return False
        self._looked_at = tx.now
        return True

    @staticmethod
    def _of_dead_servers(tx: Tx, left: list[LeftSheet]) -> list[AuditEntry]:
        """Returns what stands on sheets that were not chained: then not even their first entry is in the chain."""
        found: list[AuditEntry] = []
        for sheet in left:
            if sheet.entries and not audit.is_chained(tx, sheet.entries[0]):
                found += merged([(entry, None) for entry in sheet.entries])
        return found

    def _send(self) -> None:
        """Entries that syslog has not got yet; after a failure they go with the next batch."""
        if self._sender is None:
            return
        host = socket.gethostname()
        while True:
            with self._store.read() as tx:
                found = audit.entries_after(tx, audit.head(tx).sent_seq, _SEND)
            if not found:
                return
            try:
                self._sender.send([message(each, host) for each in found])
            except OSError as error:
                log.warning("syslog does not take the audit (%s): it is sent again later", error)
                return
            with self._store.write() as tx:
                audit.mark_sent(tx, found[-1].seq)

    def _tidy(self) -> None:
        """Remove what is older than is kept, now and then; that it was removed is an entry."""
        now = self._store.clock.now()
        if self._keep is None or (self._tidied_at and now - self._tidied_at < _HOUSEKEEPING_EVERY):
            return
        self._tidied_at = now
        self.trim()

    def trim(self) -> int:
        """Remove entries older than is kept; returns how many."""
        if self._keep is None:
            return 0
        with self._store.write() as tx:
            removed = audit.trim(tx, tx.now - self._keep)
            if removed:
                audit.append(tx, [_about_itself(self._store, "audit.trimmed", removed)])
        return removed

    def close(self) -> None:
        """Write what waits, and stop."""
        self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout=5)
        try:
            self.flush()
        except EaselError as error:
            log.error("the last entries of the audit could not be written: %s", error.message)
        if self._sheets is not None:
            self._sheets.close()


def merged(taken: Sequence[tuple[AuditEntry, str | None]]) -> list[AuditEntry]:
    """Equal reads of one caller as one entry with a count; every change stays an entry of its own."""
    found: list[AuditEntry] = []
    place: dict[tuple[object, ...], int] = {}
    more: dict[int, int] = {}
    for entry, pending in taken:
        if pending is None and (entry.method in ("GET", "HEAD") or entry.route.endswith(_QUESTION)):
            key = (entry.actor, entry.token, entry.address, entry.route, entry.path, entry.status)
            at = place.setdefault(key, len(found))
            if at < len(found):
                more[at] = more.get(at, 0) + entry.count
                continue
        found.append(entry)
    for at, times in more.items():
        found[at] = found[at].again(times)
    return found


def _about_itself(store: Store, what: str, count: int) -> AuditEntry:
    return AuditEntry(
        at=store.clock.now(),
        actor=None,
        actor_name=None,
        token=None,
        project_id=None,
        address="",
        method="",
        route=what,
        path="",
        status=0,
        outcome=AuditOutcome.ALLOWED,
        request_id="",
        count=count,
    )
