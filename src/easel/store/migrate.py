"""Bring a database to the schema of this release, after a backup; refuse one that is newer."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from easel.errors import Misconfigured
from easel.store.engine import Store

_MIGRATE_LOCK = 0x4541534D


def revision(store: Store) -> str | None:
    """The database's schema, or None when it is empty."""
    with store.read() as tx:
        return _revision(tx.conn)


@cache
def head() -> str:
    """The schema of this release: it cannot change while we run, and `/readyz` asks often."""
    found = ScriptDirectory.from_config(_config()).get_current_head()
    assert found is not None
    return found


def is_current(store: Store) -> bool:
    return revision(store) == head()


def migrate(store: Store, backup: Callable[[str], None], to: str = "head") -> None:
    """Upgrade to `to`. `backup(revision)` is called first, and only if there is something to lose."""
    scripts = ScriptDirectory.from_config(_config())
    known = {script.revision for script in scripts.walk_revisions()}
    found = revision(store)
    if found is not None and found not in known:
        raise Misconfigured(
            f"the database has schema {found}, which is newer than this Easel (it knows up to {head()}): "
            "install the release that wrote it, or restore a backup from before the upgrade"
        )
    target = head() if to == "head" else to
    if found == target:
        return
    if found is not None:
        backup(found)
    with store.write() as tx:
        if not store.is_sqlite:
            # Two servers may start at once; the second waits, then finds nothing to do.
            tx.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATE_LOCK})
        config = _config()
        config.attributes["connection"] = tx.conn
        command.upgrade(config, target)


def _revision(conn: Connection) -> str | None:
    return MigrationContext.configure(conn).get_current_revision()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    return config
