"""What of a folder is code: too many files are refused, and what changes while it is read is read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from easel.errors import TooLarge
from easel.lake.code_folder import MAX_FILES, scan_code


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
