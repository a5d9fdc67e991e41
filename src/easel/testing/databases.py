"""Databases of today's schema for tests: migrated once in each process, then copied or emptied.

Migrating from nothing takes longer than most tests; `tests/store/test_migrations.py` covers it.
"""

from __future__ import annotations

import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path

from easel.store.engine import Store
from easel.store.migrate import migrate
from easel.store.schema import metadata


def migrated(url: str) -> str:
    """Brings the database at `url` to today's schema; returns `url`."""
    store = Store(url)
    migrate(store, backup=lambda _revision: None)
    store.close()
    return url


def new_sqlite(file: Path) -> str:
    """Writes a migrated, empty database to `file`, unless there is one already; returns its address."""
    if not file.exists():
        file.write_bytes(_migrated_bytes())
    return f"sqlite:///{file}"


@cache
def _migrated_bytes() -> bytes:
    with tempfile.TemporaryDirectory(prefix="easel-template-") as folder:
        file = Path(folder) / "easel.sqlite"
        migrated(f"sqlite:///{file}")
        return file.read_bytes()


def emptied(url: str) -> str:
    """Makes the PostgreSQL database at `url` as it was when it was migrated; returns `url`.

    Few rows are deleted faster than `TRUNCATE` makes every file anew, and a database of its own for each test would
    be a thousand files that somebody has to make and to remove. Whoever is still connected is sent away.
    """
    with closing(Store(url)) as store, store.write() as tx:
        tx.conn.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        tx.conn.exec_driver_sql("SET LOCAL session_replication_role = replica")  # else the audit only grows
        tx.conn.exec_driver_sql(";".join(str(table.delete()) for table in reversed(metadata.sorted_tables)))
        tx.conn.exec_driver_sql(
            "SELECT setval((quote_ident(schemaname) || '.' || quote_ident(sequencename))::regclass, start_value, false)"
            " FROM pg_sequences WHERE last_value IS NOT NULL"
        )
    return url
