"""Tables in the encodings and forms that people keep them in."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest

from easel.declare import xlsx
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


MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
HEAD = '<row><c t="inlineStr"><is><t>size</t></is></c></row>'
STYLES = f'<styleSheet {MAIN}><cellXfs><xf numFmtId="14"/></cellXfs></styleSheet>'


def workbook(rows: str, *, words: str = "", packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packing) as book:
        sheet = f"<worksheet {MAIN}><sheetData>{rows}</sheetData></worksheet>"
        book.writestr("xl/worksheets/sheet1.xml", sheet)
        book.writestr("xl/styles.xml", STYLES)
        book.writestr("xl/sharedStrings.xml", f"<sst {MAIN}><si><t>{words}</t></si></sst>")
    return out.getvalue()


def damaged(packing: int) -> bytes:
    """A workbook whose sheet is damaged in its packed bytes."""
    made = bytearray(workbook(HEAD + "<row><c><v>1</v></c></row>" * 200, packing=packing))
    made[70:90] = bytes(range(235, 255))
    return bytes(made)


def encrypted() -> bytes:
    made = bytearray(workbook(HEAD))
    made[made.find(b"PK\1\2") + 8] |= 1
    return bytes(made)


WIDE = '<row><c r="XFD1"><v>1</v></c></row>'
ODD = {
    "damaged": damaged(zipfile.ZIP_DEFLATED),
    "damaged LZMA": damaged(zipfile.ZIP_LZMA),
    "damaged bzip2": damaged(zipfile.ZIP_BZIP2),
    "encrypted": encrypted(),
    "a date after the end of time": workbook(HEAD + '<row><c s="0"><v>1e308</v></c></row>'),
    "too deep": workbook("<a>" * 100_000),
    "a word that is not there": workbook('<row><c t="s"><v>7</v></c></row>'),
    "a row without an end": workbook(f"<row>{'<c/>' * 16_386}</row>"),
    "columns beyond the last": workbook('<row><c r="ZZZZ1"><v>1</v></c></row>'),
}


@pytest.mark.parametrize("data", ODD.values(), ids=ODD.keys())
def test_a_workbook_that_is_broken_in_any_way_is_refused_in_words(data: bytes) -> None:
    with pytest.raises(InvalidInput, match="not an Excel workbook"):
        rows_of(data, "t.xlsx")


@pytest.mark.parametrize(
    "rows", [WIDE * 20, '<row><c t="s"><v>0</v></c></row>' * 2000, f"<row>{'<c><v>1</v></c>' * 11_000}</row>"]
)
def test_a_small_workbook_that_stands_for_a_large_table_is_not_unpacked(
    monkeypatch: pytest.MonkeyPatch, rows: str
) -> None:
    monkeypatch.setattr(xlsx, "LARGEST", 1_000_000)
    monkeypatch.setattr(xlsx, "_MOST_HELD", 20_000)
    with pytest.raises(InvalidInput, match=r"more than 1,000,000 bytes|too much in one place"):
        rows_of(workbook(rows, words="w" * 1000), "t.xlsx")
