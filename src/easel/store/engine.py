"""Open the database: one reader, one writer, each a transaction."""

from __future__ import annotations

import math
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from secrets import SystemRandom
from typing import Any

from sqlalchemy import Connection, CursorResult, Engine, Executable, Row, create_engine, event, insert, text
from sqlalchemy.engine import Dialect, ExceptionContext
from sqlalchemy.exc import DBAPIError, DisconnectionError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import ConnectionPoolEntry

from easel.clock import Clock, SystemClock
from easel.errors import Misconfigured, TryLater
from easel.ids import ProjectId, UserId, mint
from easel.store.notify import CHANNEL, Ear
from easel.store.noting import noted
from easel.store.outbox import queue_messages
from easel.store.schema.audit import audit_pending
from easel.store.schema.events import events

AnyRow = Row[*tuple[Any, ...]]

_EVENTS_LOCK = 0x4541534C  # any constant: the advisory lock that gives events one order on PostgreSQL
_LOCK_AND_NOTIFY = text("SELECT pg_advisory_xact_lock(:key), pg_notify(:channel, :origin)")
_PING_AFTER_S = 0.5
"""A connection that rested for so long is asked whether its server still answers."""
_CONNECTION_S = 20
"""For so many seconds a connection is waited for, one that others use or one that is yet to begin: on a busy machine
that takes a while. A database that does not run refuses at once."""
_ADD_NOTE = insert(audit_pending)
_PLANS = "SET max_parallel_workers_per_gather = 0; SET jit = off; SET random_page_cost = 1.1"
"""How PostgreSQL plans for us: many short questions at once, on disks that do not turn."""

_ADD_EVENTS = insert(events)  # built once: nearly every change runs it


@dataclass(frozen=True, slots=True)
class NewEvent:
    kind: str
    subject: str
    project_id: ProjectId | None
    actor: UserId | None
    body: Mapping[str, Any]


@dataclass(slots=True)
class Tx:
    """One transaction. `now` is the same throughout; `emit` makes the history part of the change."""

    conn: Connection
    now: datetime
    rng: random.Random
    emitted: list[NewEvent] = field(default_factory=list)
    woken: bool = field(default=False)
    origin: str = field(default="")
    remembered: dict[tuple[str, ...], Any] = field(default_factory=dict)
    """Answers that several steps of one transaction ask for; whoever changes what they rest on empties it."""
    only_reads: bool = field(default=False)
    """Nothing written here is kept, so nothing need be locked."""

    def execute(self, statement: Executable, parameters: Any = None) -> CursorResult[*tuple[Any, ...]]:
        if isinstance(parameters, list) and len(parameters) == 1:
            parameters = parameters[
                0
            ]  # drivers open a pipeline for a list, which costs as much as the statement
        return self.conn.execute(statement, parameters)

    def mint(self, prefix: str) -> str:
        return mint(prefix, self.now, self.rng)

    def emit(
        self,
        kind: str,
        subject: str,
        *,
        project_id: ProjectId | None = None,
        actor: UserId | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> None:
        """Append to the history when the transaction commits."""
        self.emit_all([NewEvent(kind, subject, project_id, actor, dict(body or {}))])

    def emit_all(self, new: Sequence[NewEvent]) -> None:
        """Append several, in order, at the cost of one."""
        self.emitted += new

    @contextmanager
    def nested(self) -> Iterator[None]:
        """A part that may fail alone: then nothing of it is kept, its events neither."""
        before = len(self.emitted)
        try:
            with self.conn.begin_nested():
                yield
        except BaseException:
            del self.emitted[before:]
            raise

    @contextmanager
    def planned_anew(self) -> Iterator[None]:
        """Plans each question anew, where the best plan depends on its values."""
        driver: Any = self.conn.connection.driver_connection
        if self.conn.dialect.name != "postgresql":
            yield
            return
        before, driver.prepare_threshold = driver.prepare_threshold, None
        try:
            yield
        finally:
            driver.prepare_threshold = before

    def write_events(self) -> None:
        """The last thing before the commit.

        Readers follow by `seq`, so a number must not become visible before a smaller one. SQLite has one writer anyway;
        on PostgreSQL the writers of events queue here until they commit. Whoever holds this lock therefore waits for no
        other.
        """
        if not self.emitted:
            return
        if self.conn.dialect.name == "postgresql":
            self.execute(_LOCK_AND_NOTIFY, {"key": _EVENTS_LOCK, "channel": CHANNEL, "origin": self.origin})
        self.woken = True
        self.execute(
            _ADD_EVENTS,
            [
                {
                    "at": self.now,
                    "kind": each.kind,
                    "subject": each.subject,
                    "project_id": each.project_id,
                    "actor": each.actor,
                    "body": dict(each.body),
                }
                for each in self.emitted
            ],
        )
        queue_messages(self.conn, self.now, self.emitted)
        self.emitted = []

    def wake(self) -> None:
        """Wake whoever listens, in every process, after the commit."""
        if not self.woken and self.conn.dialect.name == "postgresql":
            notify = text("SELECT pg_notify(:channel, :origin)")
            self.execute(notify, {"channel": CHANNEL, "origin": self.origin})
        self.woken = True


class Store:
    """All state but the bytes. Safe to share between threads."""

    def __init__(
        self,
        url: str,
        *,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        pool_size: int = 40,
    ) -> None:
        self.clock = clock or SystemClock()
        self.rng = rng or SystemRandom()
        self.engine = _connect(url, pool_size)
        self._at_once = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        # SQLite has one writer: waiting here is fair and cheap, waiting inside SQLite is polling.
        self._writer: threading.Lock | None = threading.Lock() if self.is_sqlite else None
        self._listeners: list[Callable[[], None]] = []
        self.changes = 0
        """How many changes were committed here for a request: what was read before one may be wrong after it."""
        self._origin = os.urandom(8).hex()
        self._ear: Ear | None = None
        self._ear_lock = threading.Lock()

    @property
    def is_sqlite(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def read(self) -> Iterator[Tx]:
        """A consistent view; nothing written in it is kept."""
        with _away_means_try_later(), self.engine.connect() as conn, conn.begin() as transaction:
            yield Tx(conn, self.clock.now(), self.rng, only_reads=True)
            transaction.rollback()

    @contextmanager
    def glance(self) -> Iterator[Tx]:
        """Opens a reading for one question, without a transaction, which would take two more trips to the database."""
        if self.is_sqlite:
            with self.read() as tx:
                yield tx
            return
        with _away_means_try_later(), self._at_once.connect() as conn:
            yield Tx(conn, self.clock.now(), self.rng, only_reads=True)

    @contextmanager
    def snapshot(self) -> Iterator[Tx]:
        """A reader for which time stands still however long it reads; for backups."""
        with _away_means_try_later(), self.engine.connect() as conn:
            if not self.is_sqlite:  # a SQLite reader in WAL mode is a snapshot already
                conn.execution_options(isolation_level="REPEATABLE READ")
            with conn.begin() as transaction:
                yield Tx(conn, self.clock.now(), self.rng, only_reads=True)
                transaction.rollback()

    @contextmanager
    def write(self) -> Iterator[Tx]:
        """One transaction: all of it or nothing. Whoever listens is woken after the commit, never before."""
        with _away_means_try_later():
            if self._writer:
                with self._writer:
                    tx = yield from self._transaction()
            else:
                tx = yield from self._transaction()
        if tx.woken:
            self._wake_here()

    def _wake_here(self) -> None:
        for wake in self._listeners:
            wake()

    def _transaction(self) -> Generator[Tx, None, Tx]:
        with self.engine.connect().execution_options(easel_write=True) as conn, conn.begin():
            tx = Tx(conn, self.clock.now(), self.rng, origin=self._origin)
            yield tx
            tx.write_events()
            note = noted.get()
            keeps = note is not None and not note.kept
            if note is not None and keeps:
                tx.execute(_ADD_NOTE, {"key": note.key, "at": tx.now, "entry": note.facts()})
        if note is not None:
            self.changes += 1
            note.kept = True
        return tx

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` after each commit that emitted events, of any process on PostgreSQL; returns how to stop."""
        with self._ear_lock:
            self._listeners = [*self._listeners, wake]
            if self._ear is None and not self.is_sqlite:
                address = self.engine.url.render_as_string(hide_password=False)
                self._ear = Ear(address, self._origin, self._wake_here, self.clock)

        def stop() -> None:
            with self._ear_lock:
                self._listeners = [other for other in self._listeners if other is not wake]

        return stop

    def close(self) -> None:
        if self._ear is not None:
            self._ear.close()
        self.engine.dispose()


def _connect(url: str, pool_size: int) -> Engine:
    if url.startswith("sqlite:"):
        engine = create_engine(
            url, pool_size=pool_size, max_overflow=20, hide_parameters=True, connect_args={"timeout": 30}
        )
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    if url.startswith(("postgresql:", "postgresql+psycopg:")):
        engine = create_engine(
            url.replace("postgresql:", "postgresql+psycopg:", 1),
            pool_size=pool_size,
            max_overflow=20,
            pool_timeout=_CONNECTION_S,
            hide_parameters=True,  # secrets and people's data are among them, and errors are logged
            connect_args={"connect_timeout": _CONNECTION_S},
        )
        event.listen(engine, "handle_error", _hide_values)
        event.listen(engine, "connect", _prepare_postgres)
        event.listen(engine, "checkin", _note_return)
        event.listen(engine, "checkout", partial(_ping_after_rest, engine.dialect))
        return engine
    scheme = url.split(":", 1)[0]
    raise Misconfigured(f"database address begins with {scheme!r}: use sqlite:///… or postgresql://…")


def _hide_values(context: ExceptionContext) -> None:
    """Leave of PostgreSQL's message what went wrong: its details quote the row."""
    said = getattr(getattr(context.original_exception, "diag", None), "message_primary", None)
    if said:
        context.original_exception.args = (said,)
        if context.sqlalchemy_exception is not None:
            context.sqlalchemy_exception.args = (f"({type(context.original_exception).__name__}) {said}",)


def _prepare_postgres(dbapi: Any, _record: Any) -> None:
    dbapi.execute(_PLANS)
    dbapi.commit()


def _note_return(_dbapi: Any, record: ConnectionPoolEntry) -> None:
    record.info["returned"] = time.monotonic()


def _ping_after_rest(dialect: Dialect, dbapi: Any, record: ConnectionPoolEntry, _proxy: Any) -> None:
    """Check a connection that rested: its server may have gone meanwhile.

    One that was used a moment ago is not asked; should it be dead after all, its first statement says so and the
    caller is told to try again.
    """
    if time.monotonic() - record.info.get("returned", math.inf) < _PING_AFTER_S:
        return
    try:
        alive = dialect.do_ping(dbapi)
    except dialect.loaded_dbapi.Error:
        alive = False
    if not alive:
        raise DisconnectionError("the server closed the connection while it rested")


def _prepare_sqlite(dbapi: Any, _record: Any) -> None:
    # We begin transactions ourselves (below); the driver's own guess begins them too late.
    dbapi.isolation_level = None
    # FULL: what was acknowledged survives a power cut, at one fsync a commit.
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=30000"):
        dbapi.execute(f"PRAGMA {pragma}")


def _begin_sqlite(conn: Connection) -> None:
    # IMMEDIATE takes the write lock at once: a transaction that reads first can then never be told, after
    # the fact, that it may not write.
    if conn.get_execution_options().get("easel_write"):
        conn.exec_driver_sql("BEGIN IMMEDIATE")
        return
    # A reader's BEGIN takes no lock and cannot fail, so it need not pass through all of SQLAlchemy.
    driver = conn.connection.driver_connection
    assert driver is not None
    driver.execute("BEGIN")


def _why_away(error: DBAPIError) -> str:
    said = str(error.orig)
    if "disk is full" in said or "No space left" in said:
        return "the disk under the database is full, nothing was changed: an admin must make room"
    return "the database is not available right now; try again shortly"


@contextmanager
def _away_means_try_later() -> Iterator[None]:
    try:
        yield
    except PoolTimeout as error:
        raise TryLater("the server is busy; try again shortly", retry_after=1.0) from error
    except (OperationalError, InterfaceError) as error:
        raise TryLater(_why_away(error)) from error
    except (DBAPIError, sqlite3.DatabaseError) as error:
        said = str(error.orig if isinstance(error, DBAPIError) else error)
        if "malformed" in said or "not a database" in said:
            raise Misconfigured(
                "the database file is damaged. Stop Easel, move easel.sqlite away, and bring the last backup back "
                "(`easel restore FOLDER`), or try `sqlite3 easel.sqlite .recover` on a copy"
            ) from error
        if isinstance(error, DBAPIError) and error.connection_invalidated:
            raise TryLater("the connection to the database was lost; try again shortly") from error
        raise
