"""Writes the audit beside the requests: entries are gathered and chained in batches by a thread of its own.

A change does not rely on that: its entry is committed with the change (`store/noting.py`), and whatever a server that
died had not chained yet is chained by the next one. Only entries of reads of its last moments can be lost.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections import deque
from datetime import datetime, timedelta

from easel.errors import EaselError
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


class AuditLog:
    """One a server. The thread starts with the first entry."""

    def __init__(
        self, store: Store, *, keep: timedelta | None = None, sender: AuditSender | None = None
    ) -> None:
        self._store, self._keep, self._sender = store, keep, sender
        self._waiting: deque[tuple[AuditEntry, str | None]] = deque()
        self._dropped = 0
        self._wake = threading.Event()
        self._flushing = threading.Lock()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._looked_at: datetime | None = None
        self._tidied_at = None if keep is None else store.clock.now()

    def record(self, entry: AuditEntry, pending: str | None) -> None:
        """Take an entry; `pending` is the key under which a change committed it already."""
        if len(self._waiting) >= MOST and pending is None:
            self._dropped += 1
            return
        self._waiting.append((entry, pending))
        if not self._wake.is_set():
            self._wake.set()
        if self._thread is None:
            self._start()

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
            taken: list[tuple[AuditEntry, str | None]] = []
            while self._waiting:
                taken.append(self._waiting.popleft())
            dropped, self._dropped = self._dropped, 0
            entries = merged([entry for entry, _ in taken])
            if dropped:
                entries.append(_about_itself(self._store, "audit.dropped", dropped))
            try:
                with self._store.write() as tx:
                    left = self._orphans(tx)
                    keys = [key for _, key in taken if key is not None]
                    known = set(keys)
                    late = [(key, entry) for key, entry in left if key not in known]
                    if entries or late:
                        found = [*entries, *(entry for _, entry in late)]
                        audit.append(tx, found, [*keys, *(key for key, _ in late)])
            except BaseException:
                self._waiting.extendleft(reversed(taken))
                self._dropped += dropped
                raise
        self._send()

    def _orphans(self, tx: Tx) -> list[tuple[str, AuditEntry]]:
        """Returns what servers that died left, looked for as often as something can have become old enough."""
        if self._looked_at is not None and tx.now - self._looked_at < _LOOK_EVERY:
            return []
        self._looked_at = tx.now
        return audit.orphans(tx, tx.now - ORPHANED_AFTER)

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


def merged(entries: list[AuditEntry]) -> list[AuditEntry]:
    """Equal reads of one caller as one entry with a count; every change stays an entry of its own."""
    found: list[AuditEntry] = []
    place: dict[tuple[object, ...], int] = {}
    more: dict[int, int] = {}
    for entry in entries:
        if entry.method in ("GET", "HEAD") or entry.route.endswith(_QUESTION):
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
