"""The first sheet of an Excel workbook as text cells, by the standard library alone; formulas by their values."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from xml.etree import ElementTree
from zipfile import ZipFile

from easel.declare.broken_files import BROKEN_ZIP
from easel.errors import InvalidInput

LARGEST = 512 * 2**20
"""Bytes that a workbook may unpack to, and that its cells may have: a word is kept once and may stand in many."""
_A_CELL = 16
"""Bytes that a cell counts beside its text; a row of two cells may name the last column."""
_DEEPEST = 50
"""Elements within each other; a sheet has about eight."""
_MOST_HELD = 500_000
"""Elements of one row; 16,384 cells have some five each."""
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
    except (*BROKEN_ZIP, ElementTree.ParseError, IndexError, OverflowError) as error:
        raise InvalidInput(
            f"{name} is not an Excel workbook that can be read ({error}): save it as CSV"
        ) from None


def _elements(book: ZipFile, path: str, tag: str) -> Iterator[ElementTree.Element]:
    """The elements of this name in a part of the book, one after another: none is kept."""
    if path not in book.namelist():
        return
    with book.open(path) as part:
        open_ones: list[ElementTree.Element] = []
        held = 0
        # expat limits how far entities may grow; the size of the workbook was checked before.
        for event, element in ElementTree.iterparse(part, ("start", "end")):  # noqa: S314
            if event == "start":
                open_ones.append(element)
                held += 1
                if len(open_ones) > _DEEPEST or held > _MOST_HELD:
                    raise ValueError(f"{path} nests too deeply, or has too much in one place")
                continue
            open_ones.pop()
            if element.tag == f"{_MAIN}{tag}":
                yield element
                element.clear()
            if open_ones and not any(each.tag == f"{_MAIN}{tag}" for each in open_ones):
                open_ones[-1].remove(element)
                held = len(open_ones)


def _shared_words(book: ZipFile) -> list[str]:
    items = _elements(book, "xl/sharedStrings.xml", "si")
    return ["".join(t.text or "" for t in item.iter(f"{_MAIN}t")) for item in items]


def _date_styles(book: ZipFile) -> frozenset[int]:
    """The numbers of the cell styles that show a date."""
    own = {
        int(form.get("numFmtId", "0"))
        for form in _elements(book, "xl/styles.xml", "numFmt")
        if re.search(r"[ymdh]", re.sub(r'"[^"]*"|\[[^\]]*\]', "", form.get("formatCode", "").lower()))
    }
    cells = _elements(book, "xl/styles.xml", "cellXfs")
    forms = [int(one.get("numFmtId", "0")) for each in cells for one in each]
    return frozenset(k for k, form in enumerate(forms) if form in _BUILT_IN_DATES or form in own)


def _rows(book: ZipFile, sheet: str, words: list[str], dates: frozenset[int]) -> Iterator[list[str]]:
    size = 0
    for row in _elements(book, sheet, "row"):
        cells: list[str] = []
        for cell in row.iter(f"{_MAIN}c"):
            place = _column(cell.get("r", ""), len(cells))
            cells += [""] * (place - len(cells))
            cells.append(_text(cell, words, dates))
        size += sum(len(cell) for cell in cells) + _A_CELL * len(cells)
        if size > LARGEST:
            raise InvalidInput(
                f"the cells of {sheet} have more than {LARGEST:,} bytes: save the sheet as CSV"
            )
        if any(cells):
            yield cells


def _column(reference: str, following: int) -> int:
    letters = re.match(r"[A-Z]{1,4}", reference)
    if letters is None:
        if following >= 16_384:
            raise ValueError("a row of more than 16,384 columns")
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
