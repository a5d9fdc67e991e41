from __future__ import annotations

from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import text

from easel.errors import Misconfigured
from easel.store.engine import Store
from easel.store.migrate import head, migrate, revision
from easel.store.schema import metadata


def test_the_migrations_build_exactly_the_declared_tables(store: Store) -> None:
    with store.read() as tx:
        context = MigrationContext.configure(tx.conn, opts={"compare_type": False})
        assert compare_metadata(context, metadata) == []


def test_an_empty_database_needs_no_backup(database_url: str) -> None:
    store = Store(database_url)
    backups: list[str] = []
    migrate(store, backups.append)
    assert revision(store) == head()
    assert backups == []
    store.close()


def test_a_newer_schema_is_refused_with_a_remedy(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/easel.sqlite")
    migrate(store, backup=lambda _revision: None)
    with store.write() as tx:
        tx.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(Misconfigured, match="newer than this Easel"):
        migrate(store, backup=lambda _revision: None)
    store.close()
