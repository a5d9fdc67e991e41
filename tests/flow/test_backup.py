"""Backup of a running Easel, and restores into both kinds of database."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from easel.errors import InvalidInput
from easel.flow.backup import DATABASE, backup, backup_before_migration, restore
from easel.flow.first_start import create_platform_admin
from easel.store import events, identity
from easel.store.engine import Store
from easel.store.migrate import head, migrate, revision


def _fill(store: Store, projects: int) -> None:
    create_platform_admin(store)
    with store.write() as tx:
        for i in range(projects):
            project = identity.add_project(tx, f"p{i}", "ü " * 3)
            tx.emit(
                "project.created",
                project.id,
                project_id=project.id,
                body={"i": i, "nested": {"a": [1, None]}},
            )


def _content(store: Store) -> object:
    with store.read() as tx:
        return [
            (e.seq, e.at, e.kind, e.subject, e.project_id, e.body)
            for e in events.events_after(tx, None, 0, 10_000)
        ]


def test_a_restore_brings_back_every_row_on_either_database(
    store: Store, database_url: str, tmp_path: Path
) -> None:
    """From each database into each: the same folder moves a lab from SQLite to PostgreSQL."""
    _fill(store, 1200)
    backup(store, tmp_path / "blobs", tmp_path / "backup")
    other = Store(database_url)
    restore(tmp_path / "backup", other, tmp_path / "blobs2")
    assert _content(other) == _content(store)
    with other.write() as tx:  # counters go on after the restored rows
        tx.emit("after.restore", "x")
    with other.read() as tx:
        assert events.last_seq(tx) == len(_content(store)) + 1  # type: ignore[arg-type]
    other.close()


def test_a_second_backup_copies_only_new_blobs_and_a_restore_older_than_the_blobs_keeps_them(
    sqlite_store: Store, tmp_path: Path
) -> None:
    blobs, target = tmp_path / "blobs", tmp_path / "backup"
    (blobs / "ab").mkdir(parents=True)
    (blobs / "ab" / "one").write_bytes(b"1")
    counted: list[tuple[str, int]] = []
    backup(sqlite_store, blobs, target, lambda what, n: counted.append((what, n)))
    (blobs / "ab" / "two").write_bytes(b"2")
    (target / DATABASE).rename(tmp_path / "old.gz")
    backup(sqlite_store, blobs, target, lambda what, n: counted.append((what, n)))
    assert [n for what, n in counted if what == "blobs"] == [1, 1]
    (tmp_path / "old.gz").rename(target / DATABASE)  # the rows of the first, the blobs of the second
    (blobs / "ab" / "three").write_bytes(b"3")
    fresh = Store(f"sqlite:///{tmp_path}/fresh.sqlite")
    restore(target, fresh, blobs)
    assert sorted(path.name for path in (blobs / "ab").iterdir()) == ["one", "three", "two"]
    assert revision(fresh) == head()
    fresh.close()


def test_a_restore_never_overwrites(sqlite_store: Store, tmp_path: Path) -> None:
    backup(sqlite_store, tmp_path / "blobs", tmp_path / "backup")
    with pytest.raises(InvalidInput, match="not empty"):
        restore(tmp_path / "backup", sqlite_store, tmp_path / "blobs")
    with pytest.raises(InvalidInput, match="no backup"):
        restore(tmp_path / "nowhere", sqlite_store, tmp_path / "blobs")


def test_an_upgrade_first_copies_the_database(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/easel.sqlite")
    migrate(store, backup=lambda _revision: None, to="0001")
    with store.write() as tx:  # as the first release wrote it: later columns do not exist yet
        user = (
            "INSERT INTO users (id, name, home, platform_admin, created_at) VALUES ('usr_1', 'ana', '', 1, 0)"
        )
        tx.execute(text(user))
        tx.emit("user.created", "usr_1", body={"name": "ana"})
    backup_before_migration(store, tmp_path)("0001")
    saved = list((tmp_path / "backups").glob("before-upgrade-from-0001-*"))
    assert len(saved) == 1
    fresh = Store(f"sqlite:///{tmp_path}/fresh.sqlite")
    restore(saved[0], fresh, tmp_path / "blobs")
    assert _content(fresh) == _content(store) != []
    for opened in (store, fresh):
        opened.close()
