"""Bring a database to the schema of this release, after a backup; refuse one that is newer.

Schemas are numbered, so whether there is anything to do is seen without Alembic, which takes long to import.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from easel.errors import Misconfigured
from easel.store.engine import Store

_MIGRATE_LOCK = 0x4541534D
_SCRIPTS = Path(__file__).parent / "migrations"


def revision(store: Store) -> str | None:
    """The database's schema, or None when it is empty."""
    with store.read() as tx:
        return _revision(tx.conn)


@cache
def _known() -> list[str]:
    return sorted(file.name.partition("_")[0] for file in (_SCRIPTS / "versions").glob("[0-9]*.py"))


def head() -> str:
    """The schema of this release."""
    return _known()[-1]


def is_current(store: Store) -> bool:
    return revision(store) == head()


def migrate(store: Store, backup: Callable[[str], None], to: str = "head") -> None:
    """Upgrade to `to`. `backup(revision)` is called first, and only if there is something to lose."""
    found = revision(store)
    if found is not None and found not in _known():
        raise Misconfigured(
            f"the database has schema {found}, which is newer than this Easel (it knows up to {head()}): "
            "install the release that wrote it, or restore a backup from before the upgrade"
        )
    target = head() if to == "head" else to
    if found == target:
        return
    if found is not None:
        backup(found)
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    with store.write() as tx:
        if not store.is_sqlite:
            # Two servers may start at once; the second waits, then finds nothing to do.
            tx.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATE_LOCK})
        config.attributes["connection"] = tx.conn
        command.upgrade(config, target)


def _revision(conn: Connection) -> str | None:
    if not inspect(conn).has_table("alembic_version"):
        return None
    found = conn.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
    return None if found is None else str(found)
