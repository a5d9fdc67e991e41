"""Back up database and blobs of a running Easel into a folder or a bucket, prune old backups, and restore from one.

A place holds any number of backups. Each has a folder named for its moment with the database, the list of blobs that
there were, and a manifest; the blobs lie beside, once for all backups, and so do the encrypted secrets.
"""

from __future__ import annotations

import gzip
import json
import logging
import os
import secrets as random
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from easel.errors import InvalidInput, NotFound
from easel.lake.blobs.store import BlobStore, Incoming, StoredObject
from easel.lake.digest import Digest
from easel.lake.place import Place
from easel.run.secret_store import SecretStore
from easel.store.backups import remove_plan
from easel.store.dump import dump, load
from easel.store.engine import Store
from easel.store.migrate import migrate
from easel.version import __version__

DATABASE, MANIFEST, OBJECTS, SECRETS = "database.jsonl.gz", "backup.json", "objects.txt.gz", "secrets"
_NAME = "%Y%m%d-%H%M%S"
"""A backup is named for the moment at which it was begun."""
Progress = Callable[[str, int], None]
log = logging.getLogger("easel.backup")


@dataclass(frozen=True, slots=True)
class Made:
    """A backup that was made."""

    name: str
    rows: int
    blobs: int
    """Copied now: those that the place did not have."""
    damaged: int
    """Blobs whose bytes are not what their name says: `easel doctor` tells which files those are."""


def backup(
    store: Store,
    blobs: BlobStore,
    place: Place,
    progress: Progress = lambda _what, _n: None,
    secrets: Path | None = None,
) -> Made:
    """Copy the database, then the blobs, then the `secrets` as they lie there: encrypted.

    The key that opens them is not copied: whoever has the backup alone has no secret.

    In this order every row of the copy finds its bytes: bytes are there before a row names them, and blobs
    never change. A blob that the place has already is not copied again, so a nightly backup is small.
    """
    name = store.clock.now().astimezone(UTC).strftime(_NAME)
    with tempfile.TemporaryDirectory(prefix="easel-backup-") as folder:
        local = Path(folder)
        with gzip.open(local / DATABASE, "wb", compresslevel=5) as out:
            rows = dump(store, out)
        progress("rows", rows)
        place.put_file(f"{name}/{DATABASE}", local / DATABASE)
        found = list(blobs.objects())
        copied, damaged = copy_blobs(found, blobs, place.blobs(), progress)
        with gzip.open(local / OBJECTS, "wt", compresslevel=5) as listing:
            listing.writelines(f"{each.digest.hex()}\n" for each in found)
        place.put_file(f"{name}/{OBJECTS}", local / OBJECTS)
        if secrets is not None and secrets.is_dir():
            progress("secrets", _put_secrets(secrets, place))
        manifest = {
            "easel": __version__,
            "at": store.clock.now().isoformat(),
            "rows": rows,
            "blobs": len(found),
        }
        (local / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")
        place.put_file(f"{name}/{MANIFEST}", local / MANIFEST)  # last: what has one is whole
    return Made(name, rows, copied, damaged)


def backups_in(place: Place) -> list[str]:
    """The whole backups of a place, the oldest first."""
    return sorted(name.partition("/")[0] for name in place.names() if name.endswith(f"/{MANIFEST}"))


def surplus(names: Sequence[str], keep: int) -> list[str]:
    """Returns those to remove so that the newest `keep` are left."""
    return sorted(names)[: max(0, len(names) - keep)]


def unfinished_in(place: Place, before: datetime) -> list[str]:
    """Returns backups without a manifest that were begun before a moment, the oldest first: whoever made them died."""
    whole = set(backups_in(place))
    begun = {name.partition("/")[0] for name in place.names(partial=True) if "/" in name} - whole
    return sorted(name for name in begun if (at := _begun_at(name)) is not None and at < before)


def _begun_at(name: str) -> datetime | None:
    """When a backup of this name was begun; None for what is no backup."""
    try:
        return datetime.strptime(name, _NAME).replace(tzinfo=UTC)
    except ValueError:
        return None


def prune(
    place: Place, keep: int, spare: timedelta = timedelta(days=1), now: datetime | None = None
) -> list[str]:
    """Remove all but the newest `keep` backups, those that were never finished, and the blobs that none of those left
    names; returns what went.

    What is younger than `spare` stays: it may belong to a backup that is being made.
    """
    limit = (now or datetime.now(UTC)) - spare
    gone = [*surplus(backups_in(place), keep), *unfinished_in(place, limit)]
    for name in gone:
        for file in place.names(f"{name}/", partial=True):
            place.delete(file)
    if gone:
        needed = {digest for name in backups_in(place) for digest in _objects_of(place, name)}
        stored = place.blobs()
        for each in list(stored.objects()):
            if each.digest not in needed and each.modified <= limit:
                stored.delete(each.digest)
    return gone


def restore(
    place: Place,
    store: Store,
    blobs: BlobStore,
    progress: Progress = lambda _what, _n: None,
    secrets: Path | None = None,
    name: str | None = None,
) -> str:
    """Fill an empty store from a backup (the newest, unless `name` says another) and add the blobs that are missing;
    then bring it to this release. Returns which one it was.

    Blobs that the backup does not know are left where they are: a restore older than the blobs loses nothing
    but rows, and `easel gc` finds what no row names.
    """
    chosen = choose(place, name)
    with tempfile.TemporaryDirectory(prefix="easel-restore-") as folder:
        database = Path(folder) / DATABASE
        place.get_file(f"{chosen}/{DATABASE}" if chosen else DATABASE, database)
        source = place.blobs()
        wanted = None if not chosen else set(_objects_of(place, chosen))
        found = [each for each in source.objects() if wanted is None or each.digest in wanted]
        copy_blobs(found, source, blobs, progress)
        with gzip.open(database, "rb") as lines:
            progress("rows", load(store, iter(lines)))
    if secrets is not None:
        progress("secrets", _get_secrets(place, secrets))
    migrate(store, backup=lambda _revision: None)
    with store.write() as tx:  # two servers must not prune one place: set the plan anew where it should go on
        remove_plan(tx)
    return chosen


def choose(place: Place, name: str | None) -> str:
    """The backup of this name, or the newest; "" for the only one of a place that an earlier release wrote."""
    found = backups_in(place)
    if name is not None:
        if name not in found:
            raise NotFound(f"there is no backup {name!r} here: there are {', '.join(found[-5:]) or 'none'}")
        return name
    if found:
        return found[-1]
    if DATABASE in place.names():
        return ""
    raise InvalidInput("there is no backup here: `easel backup` makes one")


def copy_blobs(
    found: Iterable[StoredObject], source: BlobStore, target: BlobStore, progress: Progress
) -> tuple[int, int]:
    """Copy what the target lacks; each is hashed on its way. Returns how many were copied, and how many are damaged."""
    there = {each.digest for each in target.objects()}
    copied = damaged = 0
    for each in found:
        if each.digest in there:
            continue
        try:
            copied += _copy_blob(each, source, target)
        except InvalidInput as error:
            damaged += 1
            log.error("a blob is damaged and was not copied: %s", error)
            continue
        progress("blobs", 1)
    return copied, damaged


def _copy_blob(each: StoredObject, source: BlobStore, target: BlobStore) -> int:
    stage = target.begin(f"copy-{each.digest.hex()[:32]}-{random.token_hex(4)}", each.size)
    try:
        for number in range(1, stage.part_count + 1):
            at, length = (number - 1) * stage.part_size, stage.part_length(number)
            target.put_part(stage, number, source.read(each.digest, at, length))
        target.check(stage, Incoming(each.digest, each.size))
    except NotFound:  # collected as garbage since we listed it; no row of our view names it
        target.discard(stage)
        return 0
    except InvalidInput:
        target.discard(stage)
        raise
    target.promote(stage, each.digest)
    return 1


def _objects_of(place: Place, name: str) -> Iterator[Digest]:
    with tempfile.TemporaryDirectory(prefix="easel-backup-") as folder:
        listing = Path(folder) / OBJECTS
        place.get_file(f"{name}/{OBJECTS}", listing)
        with gzip.open(listing, "rt") as lines:
            yield from (Digest(bytes.fromhex(line.strip())) for line in lines)


def _put_secrets(folder: Path, place: Place) -> int:
    """Every secret under its name; those that are gone here go there too. Returns how many there are."""
    SecretStore(folder).encrypt_all()
    found = {
        f"{SECRETS}/{path.relative_to(folder)}": path
        for path in folder.glob("*/*")
        if path.is_file() and path.name[0] != "."
    }
    for name, path in found.items():
        place.put_file(name, path)
    for name in place.names(f"{SECRETS}/"):
        if name not in found:
            place.delete(name)
    return len(found)


def _get_secrets(place: Place, folder: Path) -> int:
    """Every secret under its name, readable by its owner alone; returns how many there were."""
    found = place.names(f"{SECRETS}/")
    for name in found:
        copy = folder / Path(name).relative_to(SECRETS)
        copy.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        copy.unlink(missing_ok=True)
        os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        place.get_file(name, copy)
    return len(found)


def backup_before_migration(store: Store, home: Path) -> Callable[[str], None]:
    """Copies the database (not the blobs, which migrations never touch) beside it."""

    def copy(revision: str) -> None:
        stamp = store.clock.now().strftime("%Y%m%d-%H%M%S")
        target = home / "backups" / f"before-upgrade-from-{revision}-{stamp}"
        target.mkdir(parents=True, mode=0o700)
        with gzip.open(target / DATABASE, "wb", compresslevel=5) as out:
            dump(store, out)

    return copy
