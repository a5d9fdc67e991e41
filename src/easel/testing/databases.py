"""Databases of today's schema for tests: migrated once in each process, then copied.

Migrating from nothing takes longer than most tests; `tests/store/test_migrations.py` covers it.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from easel.store.engine import Store
from easel.store.migrate import migrate


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
