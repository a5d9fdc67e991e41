"""Backup of a running Easel, and restores into both kinds of database."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from easel.errors import InvalidInput, NotFound, TryLater
from easel.flow.backup import DATABASE, backup, backup_before_migration, backups_in, prune, restore
from easel.flow.first_start import create_platform_admin
from easel.flow.lake.upload import Lake
from easel.flow.operate.backups import Backing, BackupStanding, ask_for_one, look, overdue, set_plan
from easel.flow.operate.rehearse import rehearse_restore
from easel.ids import UserId
from easel.lake.blobs.local import LocalBlobs
from easel.lake.blobs.store import BlobStore, put
from easel.lake.place import BucketPlace, FolderPlace, Place
from easel.serve.housekeeping import keep_house_once
from easel.store import events, identity
from easel.store.engine import Store
from easel.store.migrate import head, migrate, revision
from easel.testing.clock import FakeClock
from easel.testing.s3 import CREDENTIALS, new_bucket, serving


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
    place = FolderPlace(tmp_path / "backup")
    backup(store, LocalBlobs(tmp_path / "blobs"), place)
    other = Store(database_url)
    restore(place, other, LocalBlobs(tmp_path / "blobs2"))
    assert _content(other) == _content(store)
    with other.write() as tx:  # counters go on after the restored rows
        tx.emit("after.restore", "x")
    with other.read() as tx:
        assert events.last_seq(tx) == len(_content(store)) + 1  # type: ignore[arg-type]
    other.close()


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with serving() as endpoint:
        yield endpoint


@pytest.fixture(params=["folder", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "folder":
        return FolderPlace(tmp_path / "backups")
    return BucketPlace(new_bucket(request.getfixturevalue("s3")).address, CREDENTIALS)


def _names(blobs: BlobStore) -> set[bytes]:
    return {each.digest for each in blobs.objects()}


def test_backups_share_their_blobs_and_an_older_one_is_restored_whole(
    sqlite_store: Store, place: Place, tmp_path: Path
) -> None:
    clock = sqlite_store.clock = FakeClock()
    blobs = LocalBlobs(tmp_path / "blobs")
    one = put(blobs, "one", b"1" * 1000)
    first = backup(sqlite_store, blobs, place)
    clock.advance(86_400)
    two = put(blobs, "two", b"2")
    _fill(sqlite_store, 3)
    second = backup(sqlite_store, blobs, place)
    assert (first.blobs, second.blobs, second.damaged) == (1, 1, 0)
    assert backups_in(place) == [first.name, second.name]
    rehearsed = rehearse_restore(place)
    assert (rehearsed.name, rehearsed.rows) == (second.name, second.rows)
    old, new = (Store(f"sqlite:///{tmp_path}/{name}.sqlite") for name in ("old", "new"))
    target = LocalBlobs(tmp_path / "target")
    restore(place, old, target, name=first.name)
    assert (_content(old), _names(target)) == ([], {one})
    three = put(target, "three", b"3")
    restore(place, new, target)
    assert (_content(new), _names(target)) == (_content(sqlite_store), {one, two, three})
    assert revision(new) == head()
    for each in (old, new):
        each.close()


def test_pruning_keeps_the_newest_and_every_blob_that_they_name(
    sqlite_store: Store, place: Place, tmp_path: Path
) -> None:
    clock = sqlite_store.clock = FakeClock()
    blobs = LocalBlobs(tmp_path / "blobs")
    gone, kept = put(blobs, "gone", b"g"), put(blobs, "kept", b"k")
    for day in range(3):
        clock.advance(86_400)
        if day == 1:
            blobs.delete(gone)
        backup(sqlite_store, blobs, place)
    names = backups_in(place)
    assert prune(place, 2) == names[:1]
    assert _names(place.blobs()) == {gone, kept}  # it is young: another backup may be under way
    assert prune(place, 2) == []
    assert prune(place, 1, spare=timedelta(0)) == names[1:2]
    assert (backups_in(place), _names(place.blobs())) == (names[2:], {kept})


def test_a_backup_that_died_before_its_manifest_is_pruned_once_it_cannot_be_alive(
    sqlite_store: Store, place: Place, tmp_path: Path
) -> None:
    clock = sqlite_store.clock = FakeClock()
    blobs = LocalBlobs(tmp_path / "blobs")
    died = clock.now().strftime("%Y%m%d-%H%M%S")
    (tmp_path / "part").write_bytes(b"cut off")
    place.put_file(f"{died}/{DATABASE}", tmp_path / "part")
    if isinstance(place, FolderPlace):
        place.put_file(f"{died}/objects.txt.gz.partial", tmp_path / "part")
    orphaned = put(place.blobs(), "orphaned", b"of the dead one")
    clock.advance(3600)
    made = backup(sqlite_store, blobs, place)
    assert prune(place, 5, now=clock.now()) == []
    assert prune(place, 5, spare=timedelta(0), now=clock.now()) == [died]
    assert place.names(f"{died}/", partial=True) == []
    assert (backups_in(place), orphaned in _names(place.blobs())) == (
        [made.name],
        True,
    )  # by the real clock it is young


def test_a_damaged_blob_is_not_copied_and_is_told(sqlite_store: Store, tmp_path: Path) -> None:
    blobs = LocalBlobs(tmp_path / "blobs")
    digest = put(blobs, "one", b"good")
    path = blobs.path(digest)
    assert path is not None
    path.chmod(0o600)
    path.write_bytes(b"evil")
    made = backup(sqlite_store, blobs, FolderPlace(tmp_path / "backup"))
    assert (made.blobs, made.damaged) == (0, 1)


def test_a_backup_of_an_earlier_release_is_restored(sqlite_store: Store, tmp_path: Path) -> None:
    """One to a folder, with the database at its top."""
    _fill(sqlite_store, 2)
    folder = tmp_path / "backup"
    made = backup(sqlite_store, LocalBlobs(tmp_path / "blobs"), FolderPlace(folder))
    (folder / made.name / DATABASE).rename(folder / DATABASE)
    shutil.rmtree(folder / made.name)
    fresh = Store(f"sqlite:///{tmp_path}/fresh.sqlite")
    restore(FolderPlace(folder), fresh, LocalBlobs(tmp_path / "blobs"))
    assert _content(fresh) == _content(sqlite_store)
    fresh.close()


def test_a_restore_never_overwrites(sqlite_store: Store, tmp_path: Path) -> None:
    blobs, place = LocalBlobs(tmp_path / "blobs"), FolderPlace(tmp_path / "backup")
    backup(sqlite_store, blobs, place)
    with pytest.raises(InvalidInput, match="not empty"):
        restore(place, sqlite_store, blobs)
    with pytest.raises(InvalidInput, match="no backup"):
        restore(FolderPlace(tmp_path / "nowhere"), sqlite_store, blobs)
    with pytest.raises(NotFound, match="20000101"):
        restore(place, sqlite_store, blobs, name="20000101-000000")


def test_a_plan_is_followed_pruned_and_tried_again_after_a_failure(
    sqlite_store: Store, s3: str, tmp_path: Path
) -> None:
    clock = sqlite_store.clock = FakeClock()
    bucket = new_bucket(s3)
    lake = Lake(sqlite_store, LocalBlobs(tmp_path / "blobs"))
    away = False

    def open_it(_target: str) -> Place:
        if away:
            raise TryLater("the bucket cannot be reached: try again shortly")
        return BucketPlace(bucket.address, CREDENTIALS)

    backing = Backing(lake, tmp_path / "secrets", open_it)
    keep_house_once(sqlite_store, backing)
    with sqlite_store.write() as tx:
        assert look(tx) == BackupStanding(None, [])
        with pytest.raises(NotFound, match="no plan"):
            ask_for_one(tx, UserId("usr_1"))
        with pytest.raises(InvalidInput, match="relative"):
            set_plan(tx, "somewhere", timedelta(days=1), 2, open_it)
        plan = set_plan(tx, bucket.url, timedelta(days=1), 2, open_it)
    for hours in (0, 1, 24, 24):
        clock.advance(3600 * hours)
        keep_house_once(sqlite_store, backing)
    assert len(backups_in(open_it(""))) == 2  # three were made, a day apart
    away = True
    clock.advance(86_400)
    keep_house_once(sqlite_store, backing)
    with sqlite_store.read() as tx:
        runs = look(tx).runs
    assert (len(runs), runs[0].error) == (4, "the bucket cannot be reached: try again shortly")
    assert "cannot be reached" in str(overdue(plan, runs, clock.now()))
    away = False
    clock.advance(3600)
    keep_house_once(sqlite_store, backing)
    with sqlite_store.write() as tx:
        assert overdue(plan, look(tx).runs, tx.now) is None
        assert "none since" in str(overdue(plan, look(tx).runs, tx.now + timedelta(days=3)))
        ask_for_one(tx, UserId("usr_1"))
    keep_house_once(sqlite_store, backing)
    with sqlite_store.read() as tx:
        assert len(look(tx).runs) == 6


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
    restore(FolderPlace(saved[0]), fresh, LocalBlobs(tmp_path / "blobs"))
    assert _content(fresh) == _content(store) != []
    for opened in (store, fresh):
        opened.close()
