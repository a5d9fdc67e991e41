"""The first sheet of an Excel workbook as text cells, by the standard library alone; formulas by their values."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from xml.etree import ElementTree
from zipfile import BadZipFile, ZipFile

from easel.errors import InvalidInput

LARGEST = 512 * 2**20
"""Bytes that a workbook may unpack to."""
_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_BUILT_IN_DATES = frozenset([*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)])


def read_xlsx(data: bytes, name: str) -> list[list[str]]:
    """Rows of the first sheet; a cell that a row lacks is empty. Dates become `2026-11-16` or `2026-11-16 18:30:00`."""
    try:
        with ZipFile(io.BytesIO(data)) as book:
            if sum(member.file_size for member in book.infolist()) > LARGEST:
                raise InvalidInput(f"{name} unpacks to more than {LARGEST:,} bytes: save the sheet as CSV")
            words = _shared_words(book)
            dates = _date_styles(book)
            sheets = sorted(
                (n for n in book.namelist() if re.fullmatch(r"xl/worksheets/sheet\d+\.xml", n)),
                key=lambda n: int(re.findall(r"\d+", n)[-1]),
            )
            if not sheets:
                raise InvalidInput(f"{name} holds no sheet")
            return list(_rows(book, sheets[0], words, dates))
    except (BadZipFile, KeyError, ElementTree.ParseError, ValueError, IndexError, EOFError) as error:
        raise InvalidInput(
            f"{name} is not an Excel workbook that can be read ({error}): save it as CSV"
        ) from None


def _root(book: ZipFile, path: str) -> ElementTree.Element | None:
    # expat limits how far entities may grow; the size of the workbook was checked before.
    return ElementTree.fromstring(book.read(path)) if path in book.namelist() else None  # noqa: S314


def _shared_words(book: ZipFile) -> list[str]:
    root = _root(book, "xl/sharedStrings.xml")
    if root is None:
        return []
    return ["".join(t.text or "" for t in item.iter(f"{_MAIN}t")) for item in root.iter(f"{_MAIN}si")]


def _date_styles(book: ZipFile) -> frozenset[int]:
    """The numbers of the cell styles that show a date."""
    root = _root(book, "xl/styles.xml")
    if root is None:
        return frozenset()
    own = {
        int(form.get("numFmtId", "0"))
        for form in root.iter(f"{_MAIN}numFmt")
        if re.search(r"[ymdh]", re.sub(r'"[^"]*"|\[[^\]]*\]', "", form.get("formatCode", "").lower()))
    }
    cells = root.find(f"{_MAIN}cellXfs")
    forms = [int(one.get("numFmtId", "0")) for one in cells] if cells is not None else []
    return frozenset(k for k, form in enumerate(forms) if form in _BUILT_IN_DATES or form in own)


def _rows(book: ZipFile, sheet: str, words: list[str], dates: frozenset[int]) -> Iterator[list[str]]:
    root = _root(book, sheet)
    assert root is not None
    for row in root.iter(f"{_MAIN}row"):
        cells: list[str] = []
        for cell in row.iter(f"{_MAIN}c"):
            place = _column(cell.get("r", ""), len(cells))
            cells += [""] * (place - len(cells))
            cells.append(_text(cell, words, dates))
        if any(cells):
            yield cells


def _column(reference: str, following: int) -> int:
    letters = re.match(r"[A-Z]+", reference)
    if letters is None:
        return following
    place = 0
    for letter in letters[0]:
        place = 26 * place + ord(letter) - 64
    if place > 16_384:
        raise ValueError(f"the column {reference}")
    return place - 1


def _text(cell: ElementTree.Element, words: list[str], dates: frozenset[int]) -> str:
    kind = cell.get("t", "n")
    if kind == "inlineStr":
        return "".join(t.text or "" for t in cell.iter(f"{_MAIN}t"))
    value = cell.findtext(f"{_MAIN}v") or ""
    if kind == "s":
        return words[int(value)]
    if kind == "b":
        return "true" if value == "1" else "false"
    if kind == "e":
        return ""
    if value and int(cell.get("s", "0")) in dates and kind == "n":
        moment = datetime(1899, 12, 30) + timedelta(days=float(value))  # noqa: DTZ001
        midnight = moment.hour == moment.minute == moment.second == 0
        return moment.strftime("%Y-%m-%d" if midnight else "%Y-%m-%d %H:%M:%S")
    return value
