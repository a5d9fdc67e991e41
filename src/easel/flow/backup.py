"""Back up database and blobs of a running Easel into one folder, and restore from it."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from easel.errors import InvalidInput
from easel.run.secret_store import SecretStore
from easel.store.dump import dump, load
from easel.store.engine import Store
from easel.store.migrate import migrate
from easel.version import __version__

DATABASE, MANIFEST, BLOBS, SECRETS = "database.jsonl.gz", "backup.json", "blobs", "secrets"
Progress = Callable[[str, int], None]


def backup(
    store: Store,
    blobs: Path,
    target: Path,
    progress: Progress = lambda _what, _n: None,
    secrets: Path | None = None,
) -> None:
    """Copy the database, then the blobs, then the `secrets` as they lie there: encrypted.

    The key that opens them is not copied: whoever has the backup alone has no secret.

    In this order every row of the copy finds its bytes: bytes are there before a row names them, and blobs
    never change. A blob that is already in `target` is not copied again, so a nightly backup is small.
    """
    target.mkdir(parents=True, exist_ok=True, mode=0o700)
    partial = target / (DATABASE + ".partial")
    with gzip.open(partial, "wb", compresslevel=5) as out:
        rows = dump(store, out)
    progress("rows", rows)
    copied = sum(_copy_blob(source, blobs, target / BLOBS, progress) for source in _files(blobs))
    if secrets is not None and secrets.is_dir():
        SecretStore(secrets).encrypt_all()
        progress("secrets", _copy_secrets(secrets, target / SECRETS))
    partial.replace(target / DATABASE)
    manifest = {"easel": __version__, "at": store.clock.now().isoformat(), "rows": rows, "blobs": copied}
    (target / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")


def restore(
    source: Path,
    store: Store,
    blobs: Path,
    progress: Progress = lambda _what, _n: None,
    secrets: Path | None = None,
) -> None:
    """Fill an empty store from a backup and add the blobs that are missing; then bring it to this release.

    Blobs that the backup does not know are left where they are: a restore older than the blobs loses nothing
    but rows, and `easel gc` finds what no row names.
    """
    if not (source / DATABASE).is_file():
        raise InvalidInput(f"{source} holds no backup: it has no {DATABASE}")
    for blob in _files(source / BLOBS):
        _copy_blob(blob, source / BLOBS, blobs, progress)
    with gzip.open(source / DATABASE, "rb") as lines:
        progress("rows", load(store, iter(lines)))
    if secrets is not None and (source / SECRETS).is_dir():
        progress("secrets", _copy_secrets(source / SECRETS, secrets))
    migrate(store, backup=lambda _revision: None)


def _copy_secrets(source: Path, target: Path) -> int:
    """Every secret under its name, readable by its owner alone; returns how many there were."""
    found = [path for path in source.glob("*/*") if path.is_file() and path.name[0] != "."]
    for path in found:
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        copy.unlink(missing_ok=True)
        with os.fdopen(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(path.read_bytes())
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


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(".partial")]


def _copy_blob(source: Path, root: Path, target: Path, progress: Progress) -> int:
    """Whether it had to be copied. The copy appears under its name only when it is whole."""
    destination = target / source.relative_to(root)
    if destination.exists():
        return 0
    destination.parent.mkdir(parents=True, exist_ok=True)
    partial = destination.with_name(destination.name + ".partial")
    try:
        shutil.copyfile(source, partial)
    except FileNotFoundError:  # collected as garbage since we listed it; no row of our view names it
        partial.unlink(missing_ok=True)
        return 0
    partial.replace(destination)
    progress("blobs", 1)
    return 1
