"""Secrets at rest, and in a backup."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from easel.errors import Misconfigured
from easel.flow.backup import backup, restore
from easel.lake.blobs.local import LocalBlobs
from easel.lake.place import FolderPlace
from easel.run.secret_store import KEY_FILE, SecretStore
from easel.store.engine import Store
from easel.testing.databases import new_sqlite


def test_a_secret_lies_encrypted_under_a_key_that_only_its_owner_reads(tmp_path: Path) -> None:
    kept = SecretStore(tmp_path / "secrets")
    kept.write("prj_1", "token", "hidden words")
    file = tmp_path / "secrets" / "prj_1" / "token"
    assert b"hidden" not in file.read_bytes()
    assert kept.read("prj_1", "token") == "hidden words"
    for path in (file, tmp_path / KEY_FILE):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_an_earlier_release_wrote_in_clear_is_read_and_then_encrypted(tmp_path: Path) -> None:
    (tmp_path / "secrets" / "prj_1").mkdir(parents=True)
    file = tmp_path / "secrets" / "prj_1" / "token"
    file.write_text("hidden words")
    kept = SecretStore(tmp_path / "secrets")
    assert kept.read("prj_1", "token") == "hidden words"
    assert (kept.encrypt_all(), kept.encrypt_all()) == (1, 0)
    assert b"hidden" not in file.read_bytes()
    assert kept.read("prj_1", "token") == "hidden words"


def test_a_backup_holds_the_secrets_encrypted_and_gives_them_back_with_the_key(tmp_path: Path) -> None:
    old, new, copy = tmp_path / "old", tmp_path / "new", tmp_path / "copy"
    for home in (old, new):
        home.mkdir()
    store = Store(new_sqlite(old / "easel.sqlite"))
    SecretStore(old / "secrets").write("prj_1", "token", "hidden words")
    place = FolderPlace(copy)
    backup(store, LocalBlobs(old / "blobs"), place, secrets=old / "secrets")
    store.close()
    assert not any(b"hidden" in path.read_bytes() for path in copy.rglob("*") if path.is_file())
    fresh = Store(f"sqlite:///{new}/easel.sqlite")
    restore(place, fresh, LocalBlobs(new / "blobs"), secrets=new / "secrets")
    fresh.close()
    with pytest.raises(Misconfigured, match="another key"):
        SecretStore(new / "secrets").read("prj_1", "token")
    (new / KEY_FILE).write_bytes((old / KEY_FILE).read_bytes())
    assert SecretStore(new / "secrets").read("prj_1", "token") == "hidden words"
