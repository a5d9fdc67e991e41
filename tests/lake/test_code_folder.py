"""What of a folder is code: too many files are refused, and what changes while it is read is read again."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from easel.errors import TooLarge
from easel.lake.code_folder import MAX_FILES, scan_code
from easel.lake.ignore import IgnoreRules


def test_more_files_than_code_can_have_are_refused_with_a_way_out(tmp_path: Path) -> None:
    assert MAX_FILES < 200_000
    for number in range(12):
        (tmp_path / f"{number}.txt").touch()
    with pytest.raises(TooLarge, match=r"more than 10 files.*\.easelignore"):
        scan_code(tmp_path, max_files=10)
    (tmp_path / ".easelignore").write_text("*.txt\n")
    assert [file.path for file in scan_code(tmp_path, max_files=10).files] == [".easelignore"]


def test_a_file_that_changed_since_it_was_remembered_is_hashed_anew(tmp_path: Path) -> None:
    folder, memory = tmp_path / "code", tmp_path / "memory"
    folder.mkdir()
    (folder / "train.py").write_text("one")
    (first,) = scan_code(folder, memory=memory).files
    (folder / "train.py").write_text("two")  # as long as before, within the same moment
    (second,) = scan_code(folder, memory=memory).files
    assert first.digest != second.digest


def test_what_was_decided_of_a_folder_stands_until_an_ignore_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, memory = tmp_path / "code", tmp_path / "memory"
    for name in ("src", "data", "empty/inner"):
        (folder / name).mkdir(parents=True)
    for name in ("train.py", "src/model.py", "data/table.csv"):
        os.utime(_written(folder / name), ns=(0, 0))
    (folder / ".easelignore").write_text("data/\n")
    first = scan_code(folder, memory=memory, top=folder)
    monkeypatch.setattr(time, "time_ns", lambda: 2 * 10**18)  # long after the files were written
    assert scan_code(folder, memory=memory, top=folder) == first
    asked: list[str] = []
    judge = IgnoreRules.leaves_out

    def noting(rules: IgnoreRules, path: str) -> bool:
        asked.append(path)
        return judge(rules, path)

    monkeypatch.setattr(IgnoreRules, "leaves_out", noting)
    assert scan_code(folder, memory=memory, top=folder) == first
    assert asked == []  # so that the patterns are not even read
    (folder / ".easelignore").write_text("src/\n")
    changed = scan_code(folder, memory=memory, top=folder)
    assert [file.path for file in changed.files] == [".easelignore", "data/table.csv", "train.py"]


def test_a_file_that_may_no_longer_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, memory = tmp_path / "code", tmp_path / "memory"
    folder.mkdir()
    _written(folder / "train.py")
    _written(folder / "key.pem")
    scan_code(folder, memory=memory)
    (folder / "key.pem").chmod(0)
    monkeypatch.setattr(os, "access", lambda path, _: not str(path).endswith("key.pem"))  # root may read all
    found = scan_code(folder, memory=memory)
    assert [file.path for file in found.files] == ["train.py"]
    assert found.left_out == ("key.pem (you may not read it)",)


def _written(file: Path) -> Path:
    file.write_text(file.name)
    return file
