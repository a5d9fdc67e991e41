from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import text

from easel.errors import Misconfigured
from easel.store.dump import load
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


KEPT = sorted((Path(__file__).parent.parent / "fixtures" / "databases").glob("*.jsonl.gz"))


@pytest.mark.parametrize("file", KEPT, ids=lambda file: file.name)
def test_a_database_of_every_released_schema_still_upgrades(file: Path, database_url: str) -> None:
    """CONTRIBUTING says how to keep one when a schema is released."""
    store = Store(database_url)
    with gzip.open(file, "rb") as lines:
        rows = load(store, iter(lines))
    migrate(store, backup=lambda _revision: None)
    assert revision(store) == head()
    with store.read() as tx:
        kept = tx.execute(text("SELECT count(*) FROM projects")).scalar_one()
        context = MigrationContext.configure(tx.conn, opts={"compare_type": False})
        assert compare_metadata(context, metadata) == []
    assert rows > 0
    assert kept == 2
    store.close()
