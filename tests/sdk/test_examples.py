"""Files on somebody's machine become pairs and questions, or are refused in words."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from easel.declare.friendly import read_program
from easel.errors import InvalidInput
from easel.sdk.apps import BATCH_BYTES, _questions
from easel.sdk.examples import read_objects, read_pairs
from easel.sdk.values import LARGEST_PICTURE, LARGEST_SIDE, light

ROWS = read_program("input: {size: number}\noutput: [no, yes]")


def test_a_file_that_is_no_workbook_is_refused_in_words(tmp_path: Path) -> None:
    sheet = tmp_path / "plants.xlsx"
    sheet.write_bytes(b"PK\x03\x04\xff\xfe\x80 not text")
    for read in (read_pairs, read_objects):
        with pytest.raises(InvalidInput, match=r"plants\.xlsx is not an Excel workbook.*save it as CSV"):
            list(read(sheet, ROWS))


def test_lines_that_were_fed_may_be_asked_about_as_they_are(tmp_path: Path) -> None:
    lines = tmp_path / "rows.jsonl"
    lines.write_text(
        "\n".join(json.dumps(one) for one in ({"input": {"size": 1}, "output": "no"}, {"size": 2}))
    )
    assert list(read_objects(lines, ROWS)) == [{"size": 1}, {"size": 2}]
    own = read_program("input: {input: number}\noutput: [no, yes]")
    lines.write_text(json.dumps({"input": 3}))
    assert list(read_objects(lines, own)) == [{"input": 3}]


def test_arrays_are_asked_about_from_python(tmp_path: Path) -> None:
    np.save(tmp_path / "new.npy", np.zeros(3))
    with pytest.raises(InvalidInput, match="ask about arrays from Python"):
        list(read_objects(tmp_path / "new.npy", ROWS))


def test_a_large_photograph_is_shrunk_before_it_is_asked_about(tmp_path: Path) -> None:
    photo = tmp_path / "leaf.jpg"
    noise = np.random.default_rng(0).integers(0, 255, size=(1200, 1600, 3), dtype=np.uint8)
    Image.fromarray(noise).save(photo, quality=95)
    assert photo.stat().st_size > LARGEST_PICTURE
    for given in (photo, photo.read_bytes()):
        sent = light(given)
        assert len(sent) <= LARGEST_PICTURE
        assert Image.open(io.BytesIO(sent)).size == (LARGEST_SIDE, LARGEST_SIDE * 3 // 4)
    Image.fromarray(noise[:8, :8]).save(tmp_path / "small.png")
    assert light(tmp_path / "small.png") == tmp_path / "small.png"
    (tmp_path / "torn.jpg").write_bytes(b"x" * (LARGEST_PICTURE + 1))
    with pytest.raises(InvalidInput, match=r"torn\.jpg cannot be read as a picture"):
        light(tmp_path / "torn.jpg")


def test_many_questions_go_in_requests_that_a_server_accepts() -> None:
    asked = ["x" * 300_000] * 10
    batches = list(_questions(asked))
    assert [one for batch in batches for one in batch] == asked
    assert all(len(json.dumps(batch)) < 1.1 * BATCH_BYTES for batch in batches)
    assert list(_questions([])) == [[]]


def test_a_file_that_changes_while_it_is_read_is_refused_in_words(tmp_path: Path) -> None:
    program = read_program("{input: {[a :: Number], []}, output: {[b :: Number], []}}")
    lines = tmp_path / "rows.jsonl"
    lines.write_text('{"input": {"a": 1}, "output": 2}\n' * 3, encoding="utf-8")
    pairs = read_pairs(lines, program)
    assert next(pairs) == ({"a": 1}, 2)
    with lines.open("a", encoding="utf-8") as file:
        file.write('{"input": {"a": 7}, "output": 8}\n')
    with pytest.raises(InvalidInput, match=r"rows\.jsonl changed while it was read: try again when"):
        list(pairs)
    assert len(list(read_pairs(lines, program))) == 4, "once it is complete it is read as it is"

    class WrittenTo(type(tmp_path)):  # type: ignore[misc]
        """A table to which somebody adds a row in the moment in which it was read."""

        def read_bytes(self) -> bytes:
            data: bytes = super().read_bytes()
            with self.open("a", encoding="utf-8") as file:
                file.write("3,4\n")
            return data

    table = WrittenTo(tmp_path / "rows.csv")
    table.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"rows\.csv changed while it was read"):
        list(read_pairs(table, program))
