"""What a command leaves for the agent to read is bounded in every direction."""

from __future__ import annotations

import json
import os
import resource
import zipfile
from pathlib import Path
from typing import Any

import pytest

from easel.lake.paths import file_path
from easel.run.code_folder import unzip
from easel.run.depot import outputs
from easel.run.failure import Failure
from easel.run.result import MAX_BYTES, NAME, REFUSED, read_result


def left(folder: Path, text: str) -> Any:
    (folder / NAME).write_text(text)
    return read_result(folder)


def test_numbers_that_are_none_become_null_and_plain_values_get_a_name(tmp_path: Path) -> None:
    assert left(tmp_path, '{"a": NaN, "b": 1e999, "c": -Infinity, "d": 2.5}') == {
        "a": None,
        "b": None,
        "c": None,
        "d": 2.5,
    }
    assert left(tmp_path, "3") == {"value": 3}


def test_half_a_surrogate_pair_and_nul_never_reach_the_database(tmp_path: Path) -> None:
    found = left(tmp_path, r'{"\ud800": "\udc00x\u0000", "whole": "\ud83d\ude00"}')
    json.dumps(found, ensure_ascii=False).encode()
    assert "\0" not in str(found)
    assert found["whole"] == "\N{GRINNING FACE}"


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 500 + "1" + "}" * 500, "{", "9" * 5000])
def test_what_is_nested_too_deeply_or_broken_says_so(tmp_path: Path, text: str) -> None:
    assert set(left(tmp_path, text)) == {REFUSED}


def test_a_file_with_a_hole_of_gigabytes_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / NAME).open("wb") as file:
        file.truncate(2 << 30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert str(MAX_BYTES) in str(read_result(tmp_path))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024


def test_links_and_pipes_are_no_results(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("{}")
    (tmp_path / NAME).symlink_to(tmp_path / "secret")
    assert read_result(tmp_path) is None
    (tmp_path / NAME).unlink()
    os.mkfifo(tmp_path / NAME)
    assert read_result(tmp_path) is None


def test_output_names_that_the_lake_does_not_take_are_kept_in_another_spelling(tmp_path: Path) -> None:
    names = [b"plain.txt", b"a\nb", b"x\xff", b"end.", b"%2e%2e", b"back\\slash", b"\x01" * 200]
    for name in names:
        Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name))).write_text("x")  # noqa: PTH118
    found = [name for name, _ in outputs(tmp_path)]
    assert len(set(found)) == len(names)
    assert [file_path(name) for name in found] == found
    assert {"/plain.txt", "/a=0Ab", "/x=FF"} <= set(found)


def test_a_broken_zip_of_code_is_a_failure_with_words(tmp_path: Path) -> None:
    archive = tmp_path / "code.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("train.py", "print('hello')\n" * 500)
    data = bytearray(archive.read_bytes())
    data[45:75] = b"\xff" * 30
    archive.write_bytes(data)
    with pytest.raises(Failure, match="not a usable zip file") as failure:
        unzip(archive, tmp_path / "work", 1 << 20)
    assert failure.value.final
