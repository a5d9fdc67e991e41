"""Bring a database to the schema of this release, after a backup; refuse one that this release cannot use.

Schemas are numbered, so whether there is anything to do is seen without Alembic, which takes long to import.

Old and new servers use one database while an installation is upgraded. The database says which is the oldest schema
whose release still works with it (`schema_support`): migrations that only add leave it as it is, one that removes or
changes what older releases use raises it by its `oldest_supported`.
"""

from __future__ import annotations

import enum
import importlib
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


class SchemaFit(enum.StrEnum):
    """How the database's schema fits this release."""

    CURRENT = "current"
    OLDER = "older"
    """To be migrated; an empty database too."""
    NEWER = "newer"
    """A newer release has added to it; this release works with it all the same."""
    TOO_NEW = "too new"
    """This release no longer works with it."""


def schema_fit(found: str | None, oldest: str | None) -> SchemaFit:
    """Returns how schema `found`, which releases from schema `oldest` on can use, fits this release."""
    if found == head():
        return SchemaFit.CURRENT
    if found is None or found in _known():
        return SchemaFit.OLDER
    return SchemaFit.NEWER if oldest is not None and oldest <= head() else SchemaFit.TOO_NEW


def look_at_schema(store: Store) -> tuple[str | None, SchemaFit]:
    """Returns the database's schema, and how it fits this release."""
    with store.read() as tx:
        found = _revision(tx.conn)
        if found is None or found in _known():
            return found, schema_fit(found, None)
        return found, schema_fit(found, _oldest(tx.conn))


def migrate(store: Store, backup: Callable[[str], None], to: str = "head") -> None:
    """Upgrade to `to`. `backup(revision)` is called first, and only if there is something to lose.

    A schema that a newer release has only added to is left as it is: this release works with it.
    """
    found, fit = look_at_schema(store)
    if fit is SchemaFit.NEWER and to == "head":
        return
    if fit in (SchemaFit.NEWER, SchemaFit.TOO_NEW):
        raise Misconfigured(
            f"the database has schema {found}, which is newer than this Easel (it knows up to {head()}): "
            "install the release that wrote it, or restore a backup from before the upgrade"
        )
    target = head() if to == "head" else to
    if target not in _known():
        raise Misconfigured(
            f"schema {target} is newer than this Easel (it knows up to {head()}): install a newer one"
        )
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
        _say_oldest(tx.conn, _oldest_supported(target))


def _revision(conn: Connection) -> str | None:
    if not inspect(conn).has_table("alembic_version"):
        return None
    found = conn.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
    return None if found is None else str(found)


def _oldest_supported(target: str) -> str:
    """The oldest schema whose release works with schema `target`, by what its migrations say."""
    folder = f"{__name__.rpartition('.')[0]}.migrations.versions"
    names = [file.stem for file in (_SCRIPTS / "versions").glob("[0-9]*.py") if file.stem[:4] <= target]
    modules = [importlib.import_module(f"{folder}.{name}") for name in names]
    return max(str(getattr(module, "oldest_supported", _known()[0])) for module in modules)


def _oldest(conn: Connection) -> str | None:
    if not inspect(conn).has_table("schema_support"):
        return None
    found = conn.execute(text("SELECT oldest FROM schema_support")).scalar_one_or_none()
    return None if found is None else str(found)


def _say_oldest(conn: Connection, oldest: str) -> None:
    if inspect(conn).has_table("schema_support"):
        conn.execute(text("DELETE FROM schema_support"))
        conn.execute(text("INSERT INTO schema_support (oldest) VALUES (:oldest)"), {"oldest": oldest})
