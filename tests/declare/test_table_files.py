"""Tables in the encodings and forms that people keep them in."""

from __future__ import annotations

import io
from typing import Any

import pytest

from easel.declare.csv_table import read_table_file
from easel.declare.pairs import pairs_of_rows
from easel.declare.parse import parse_program
from easel.errors import InvalidInput

PROGRAM = parse_program("{input: {[size :: Number, day :: Date], []}, output: {[label :: Category], []}}")


def rows_of(data: bytes, name: str) -> list[dict[str, Any]]:
    return list(read_table_file(data, name)[1])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
def test_a_table_is_read_in_every_usual_encoding(encoding: str) -> None:
    assert rows_of("name,city\nJosé,Zürich\n".encode(encoding), "people.csv") == [
        {"name": "José", "city": "Zürich"}
    ]


def test_a_semicolon_table_with_decimal_commas_and_day_first_dates_gives_numbers_and_dates() -> None:
    text = "size;day;label\n1,5;25/12/2025;a\n2,234;01/02/2026;b\n"
    header, rows = read_table_file(text.encode(), "t.csv")
    pairs = list(pairs_of_rows(PROGRAM, header, rows))
    assert [source["size"] for source, _ in pairs] == [1.5, 2.234]
    assert pairs[1][0]["day"] == 1_769_904_000.0


def test_an_excel_workbook_is_a_table() -> None:
    openpyxl = pytest.importorskip("openpyxl")
    from datetime import date

    book = openpyxl.Workbook()
    book.active.append(["size", "day", "label"])
    book.active.append([1.5, date(2026, 2, 1), "a"])
    book.active.append([None, date(2026, 2, 2), "b & c"])
    out = io.BytesIO()
    book.save(out)
    assert rows_of(out.getvalue(), "t.xlsx") == [
        {"size": "1.5", "day": "2026-02-01", "label": "a"},
        {"size": "", "day": "2026-02-02", "label": "b & c"},
    ]


def test_what_is_neither_text_nor_a_workbook_is_refused_in_words() -> None:
    with pytest.raises(InvalidInput, match="not an Excel workbook"):
        rows_of(b"size,label\n1,a\n", "t.xlsx")
    with pytest.raises(InvalidInput, match="is not text"):
        rows_of(b"\x00\x81\x82\x00", "t.csv")
