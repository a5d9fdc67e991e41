"""The entry of a read is in a file before the read is answered, and no kill loses it or has it twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.serve.test_audit import entry

from easel.errors import TryLater
from easel.flow.audit.log import AuditLog
from easel.flow.audit.sheets import SHEET_BYTES, Sheets
from easel.flow.audit.verify import verify
from easel.records.audit import plain
from easel.store import audit
from easel.store.engine import Store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "sheets"


def pages(store: Store) -> list[tuple[str, int]]:
    with store.read() as tx:
        return [(each.entry.path, each.entry.count) for each in audit.walk(tx)]


def test_reads_are_on_a_sheet_until_they_are_chained(sqlite_store: Store, folder: Path) -> None:
    log = AuditLog(sqlite_store, sheets=Sheets(folder))
    for number in (1, 1, 2):
        log._take(entry(sqlite_store, number, "GET"), None)
    (sheet,) = folder.iterdir()
    assert sheet.read_bytes().count(b"\n") == 3
    log.flush()
    assert sheet.read_bytes().strip(b"\0") == b""
    log._take(entry(sqlite_store, 3, "GET"), None)
    assert [sheet] == list(folder.iterdir())  # it is used again
    log.close()
    assert list(folder.iterdir()) == []
    assert pages(sqlite_store) == [("/x/1", 2), ("/x/2", 1), ("/x/3", 1)]


def test_a_full_sheet_is_followed_by_another_and_equal_reads_on_both_are_two_entries(
    sqlite_store: Store, folder: Path
) -> None:
    log = AuditLog(sqlite_store, sheets=Sheets(folder))
    size = len(json.dumps(plain(entry(sqlite_store, 1, "GET")), separators=(",", ":"))) + 1
    for _ in range(SHEET_BYTES // size + 5):
        log._take(entry(sqlite_store, 1, "GET"), None)
    assert len(list(folder.iterdir())) == 2
    log.close()
    counts = [count for _, count in pages(sqlite_store)]
    assert len(counts) == 2
    assert sum(counts) == SHEET_BYTES // size + 5


def dead_server(folder: Path, code: str) -> None:
    """Lets a process of its own put entries on a sheet and die by kill -9."""
    script = f"""
import os, signal, sys
from datetime import UTC, datetime
from pathlib import Path
from easel.flow.audit.sheets import Sheets
from easel.records.audit import AuditEntry, AuditOutcome
def read(number):
    at = datetime(2026, 11, 18, 9, 0, number, 123456, tzinfo=UTC)
    return AuditEntry(at, "usr_1", "ana", "tok_1", None, "::1", "GET", "/x", f"/x/{{number}}", 200,
        AuditOutcome.ALLOWED, f"r{{number}}")
sheets = Sheets(Path({str(folder)!r}))
sheet = sheets.take()
{code}
os.kill(os.getpid(), signal.SIGKILL)
"""
    ended = subprocess.run([sys.executable, "-c", script], check=False)
    assert ended.returncode == -signal.SIGKILL


def test_what_a_killed_server_answered_is_chained_once_by_the_next(sqlite_store: Store, folder: Path) -> None:
    dead_server(folder, "for number in (1, 2, 2): sheet.write(read(number))")
    (sheet,) = folder.iterdir()
    kept = sheet.read_bytes()
    AuditLog(sqlite_store, sheets=Sheets(folder)).flush()
    assert pages(sqlite_store) == [("/x/1", 1), ("/x/2", 2)]
    assert not sheet.exists()
    sheet.write_bytes(kept)  # as if it was killed after they were chained, before it wiped the sheet
    AuditLog(sqlite_store, sheets=Sheets(folder)).flush()
    assert pages(sqlite_store) == [("/x/1", 1), ("/x/2", 2)]
    assert not sheet.exists()
    assert verify(sqlite_store).whole


def test_a_line_that_a_kill_cut_off_and_a_wiped_sheet_disturb_nobody(
    sqlite_store: Store, folder: Path
) -> None:
    dead_server(folder, 'sheet.write(read(1)); sheet._bytes[sheet._used : sheet._used + 9] = b\'{"at":"20\'')
    dead_server(folder, "sheet.write(read(2)); sheet._bytes[0:1] = bytes(1)")
    AuditLog(sqlite_store, sheets=Sheets(folder)).flush()
    assert pages(sqlite_store) == [("/x/1", 1)]
    assert list(folder.iterdir()) == []


def test_the_sheet_of_a_server_that_lives_is_left_alone(sqlite_store: Store, folder: Path) -> None:
    code = f"""
import fcntl, sys
from pathlib import Path
from easel.flow.audit.sheets import Sheets
print(len(list(Sheets(Path({str(folder)!r})).left_behind())))
"""
    ours = AuditLog(sqlite_store, sheets=Sheets(folder))
    ours._take(entry(sqlite_store, 1, "GET"), None)
    theirs = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert theirs.stdout == "0\n"
    AuditLog(sqlite_store, sheets=Sheets(folder)).flush()  # another one in this process
    assert pages(sqlite_store) == []
    ours.close()
    assert pages(sqlite_store) == [("/x/1", 1)]


def test_where_no_file_can_be_made_entries_are_chained_all_the_same(
    sqlite_store: Store, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder.write_text("no folder")
    log = AuditLog(sqlite_store, sheets=Sheets(folder))
    for number in (1, 2):
        log._take(entry(sqlite_store, number, "GET"), None)
    log.close()
    assert pages(sqlite_store) == [("/x/1", 1), ("/x/2", 1)]
    assert caplog.text.count("no file for entries of the audit") == 1


def test_entries_that_the_database_did_not_take_stay_on_their_sheets(
    sqlite_store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = AuditLog(sqlite_store, sheets=Sheets(folder))
    log._take(entry(sqlite_store, 1, "GET"), None)
    dead_server(folder, "sheet.write(read(7))")

    def refuse(*_: object) -> None:
        raise TryLater("away")

    with monkeypatch.context() as patch:
        patch.setattr(audit, "append", refuse)
        with pytest.raises(TryLater):
            log.flush()
    log._take(entry(sqlite_store, 2, "GET"), None)
    assert sum(path.read_bytes().count(b"\n") for path in folder.iterdir()) == 3
    log._looked_at = None
    log.close()
    assert sorted(pages(sqlite_store)) == [("/x/1", 1), ("/x/2", 1), ("/x/7", 1)]
    assert list(folder.iterdir()) == []
