"""`easel doctor` on what is stored: it finds what is wrong, and says what to do."""

from __future__ import annotations

import json
import os
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text, update
from typer.testing import CliRunner

from easel.cli import doctor
from easel.declare.resources import Room
from easel.declare.roles import Role
from easel.flow.lake import upload
from easel.flow.lake.ingest import send
from easel.flow.lake.upload import Lake
from easel.flow.operate.backups import set_plan
from easel.ids import TokenId
from easel.lake.folder import scan
from easel.lake.place import open_place
from easel.records.identity import Caller
from easel.run.leftovers import stale_mounts
from easel.serve.lake import open_lake
from easel.serve.settings import load, prepare_home
from easel.store import backups, devices, identity
from easel.store.engine import Store
from easel.store.schema.identity import tokens
from easel.testing.clock import FakeClock
from easel.testing.databases import new_sqlite


def test_the_doctor_finds_damaged_bytes_orphan_rows_and_stale_mounts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("EASEL_HOME", str(home))
    settings = load()
    prepare_home(settings)
    store = Store(new_sqlite(settings.folder / "easel.sqlite"))
    lake = open_lake(settings, store)
    caller = _somebody(store)
    good, other = b"good" * 1000, b"other"
    _put(lake, caller, {"/good": good, "/other": other})
    said = _doctor("--json")
    assert {"stored bytes", "orphan rows", "stale mounts"} <= {
        each["what"] for each in said if each["state"] == "ok"
    }

    (stored,) = (home / "blobs" / "objects").glob("*/*")
    stored.chmod(0o644)
    stored.write_bytes(stored.read_bytes().replace(b"goodgood", b"bad!good", 1))
    with store.write() as tx:
        tx.execute(text("UPDATE artifacts SET digest = :lost WHERE name = '/other'"), {"lost": bytes(32)})
    wrong = {each["what"]: each["detail"] for each in _doctor("--json") if each["state"] == "wrong"}
    assert "astro: /good:1" in wrong["stored bytes"]
    assert "astro: /other:1" in wrong["orphan rows"]

    _doctor("--json", "--fix")
    _put(lake, caller, {"/good": good})
    assert [each["state"] for each in _doctor("--json") if each["what"] == "stored bytes"] == ["ok"]
    store.close()


def test_the_doctor_says_where_the_kernel_forbids_the_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = {each.what: each.state for each in doctor._programs()}
    assert programs["bwrap"] == "ok"
    refused = tmp_path / "bwrap"
    refused.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2; exit 1\n")
    refused.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (found,) = [each for each in doctor._programs() if each.what == "bwrap"]
    assert found.state == "wrong"
    assert "user namespaces" in found.detail


def test_the_doctor_names_each_fault_of_an_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Full disk, wrong modes, clock off, lost worker, failing and dead backups, an expired token: each once."""
    home, place = tmp_path / "home", tmp_path / "backups"
    monkeypatch.setenv("EASEL_HOME", str(home))
    settings = load()
    prepare_home(settings)
    clock = FakeClock(datetime.now(UTC))
    store = Store(new_sqlite(settings.folder / "easel.sqlite"), clock=clock)
    caller = _somebody(store)
    with store.write() as tx:
        devices.seen(tx, "node7", "local", Room(4, 8192), {})
        set_plan(tx, str(place), timedelta(days=1), 3, open_place)
        token = identity.add_token(tx, caller.user.id, "nightly", "h" * 64, clock.now() + timedelta(hours=2))
        identity.touch_token(tx, token.id)
    faults = ("disk", "file modes", "clock", "workers", "backups", "unfinished backups", "tokens")
    assert _states(faults) == dict.fromkeys(faults, "ok")

    assert _broken("disk", EASEL_LEAST_FREE_MB=str(2**40), monkeypatch=monkeypatch).startswith("wrong")
    key = home / "odd.key"
    key.touch(mode=0o644)
    assert "odd.key" in _broken("file modes")
    _doctor("--json", "--fix")
    assert _broken("file modes") == "ok private"
    with store.write() as tx:
        tx.execute(text("UPDATE devices SET connected = :no WHERE name = 'node7'"), {"no": False})
    assert "1 of 1 lost: node7" in _broken("workers")
    with store.write() as tx:
        backups.end(tx, backups.begin(tx, str(place)), error="no room in the bucket")
    assert "no room in the bucket" in _broken("backups")
    (place / "20200101-000000").mkdir(parents=True)
    (place / "20200101-000000" / "database.jsonl.gz").touch()
    assert "20200101-000000" in _broken("unfinished backups")
    with store.write() as tx:
        ended = {"at": datetime.now(UTC) - timedelta(minutes=5)}
        tx.execute(update(tokens).values(expires_at=ended["at"]))
    assert "nightly of ana" in _broken("tokens")
    clock.advance(3600)
    with store.write() as tx:
        tx.emit("project.created", "prj_1")
    assert "in the future" in _broken("clock")
    store.close()


def _states(names: tuple[str, ...]) -> dict[str, str]:
    return {each["what"]: each["state"] for each in _doctor("--json") if each["what"] in names}


def _broken(name: str, monkeypatch: pytest.MonkeyPatch | None = None, **variables: str) -> str:
    """Returns what the doctor says of one thing, with its state before it."""
    if monkeypatch is None:
        return next(f"{each['state']} {each['detail']}" for each in _doctor("--json") if each["what"] == name)
    with monkeypatch.context() as patch:
        for variable, value in variables.items():
            patch.setenv(variable, value)
        return _broken(name)


def test_mounts_below_the_home_are_left_over(tmp_path: Path) -> None:
    home = tmp_path / "a home"
    shown = str(home).replace(" ", "\\040")
    lines = [
        f"tmpfs {shown}/run/attempts/a tmpfs rw 0 0",
        f"x {shown}/run/attempts/a/b x rw 0 0",
        "/dev/vda / ext4",
    ]
    assert stale_mounts(home, lines) == [
        home / "run" / "attempts" / "a" / "b",
        home / "run" / "attempts" / "a",
    ]


def _doctor(*words: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(CliRunner().invoke(doctor.app, list(words)).stdout)
    return found


def _somebody(store: Store) -> Caller:
    with store.write() as tx:
        project = identity.add_project(tx, "astro", "")
        user = identity.add_user(tx, "ana", home=project.id)
        identity.put_member(tx, project.id, user.id, Role.MEMBER)
    return Caller(user, TokenId("tok_test"), project, Role.MEMBER)


def _put(lake: Lake, caller: Caller, files: dict[str, bytes]) -> None:
    with lake.store.write() as tx:
        session = upload.start(tx, caller)
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            (Path(folder) / name.lstrip("/")).write_bytes(content)
        send(lake, caller, session.id, scan(Path(folder), "/"))
    with lake.store.write() as tx:
        upload.commit(tx, caller, session.id)
