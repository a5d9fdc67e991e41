"""Tables as people keep them: CSV with commas, semicolons or tabs in any usual encoding, and Excel workbooks."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any, TextIO

from easel.declare.xlsx import read_xlsx
from easel.errors import InvalidInput

LONGEST_CELL = 2**22
TABLES = (".csv", ".tsv", ".xlsx")
"""Endings of the files that are read here."""
MOST_COLUMNS = 100_000
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")
csv.field_size_limit(LONGEST_CELL)


def read_table_file(data: bytes, name: str) -> tuple[list[str], Iterator[dict[str, Any]]]:
    """The names of the columns, and the rows by them, of a CSV file or an Excel workbook."""
    if not name.lower().endswith(".xlsx"):
        return read_csv(decode_text(data, name), name)
    rows = read_xlsx(data, name)
    if not rows:
        raise InvalidInput(f"{name} is empty")
    header = _checked([cell.strip() for cell in rows[0]], name)
    wide = next((number for number, row in enumerate(rows, start=1) if len(row) > len(header)), None)
    if wide is not None:
        raise InvalidInput(f"{name}, row {wide}: {len(rows[wide - 1])} cells under {len(header)} columns")
    padded = ([*row, *[None] * (len(header) - len(row))] for row in rows[1:])
    return header, (dict(zip(header, row, strict=True)) for row in padded)


def decode_text(data: bytes, name: str) -> str:
    """UTF-8, UTF-16 with its mark, or the Western European encoding that older programs write."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return data.decode("utf-16")
        except UnicodeDecodeError as error:
            raise InvalidInput(f"{name} cannot be read as CSV: {error}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    if b"\0" in data[:4096] or data[:2] == b"PK":
        raise InvalidInput(f"{name} is not text: CSV, JSON lines, xlsx, Parquet, npz and pictures are read")
    return data.decode("cp1252", errors="replace")


def read_csv(text: str, name: str) -> tuple[list[str], Iterator[dict[str, Any]]]:
    """The names of the columns, and the rows by them. Cells that a row is short of are None."""
    lines = io.StringIO(text, newline="")
    mark = _delimiter(text)
    reader = csv.DictReader(lines, delimiter=mark) if mark else csv.DictReader(lines, dialect=_dialect(text))
    return _opened(reader, name)


def csv_rows(lines: TextIO, name: str) -> tuple[list[str], Iterator[dict[str, Any]]]:
    """What `read_csv` returns, of an open file that is read as the rows are asked for."""
    beginning = lines.read(16_384)
    lines.seek(0)
    mark = _delimiter(beginning)
    reader = (
        csv.DictReader(lines, delimiter=mark) if mark else csv.DictReader(lines, dialect=_dialect(beginning))
    )
    return _opened(reader, name)


def _opened(reader: csv.DictReader[str], name: str) -> tuple[list[str], Iterator[dict[str, Any]]]:
    try:
        header = [str(column) for column in reader.fieldnames or ()]
    except csv.Error as error:
        raise InvalidInput(f"{name} cannot be read as CSV: {error}") from None
    return _checked(header, name), _rows(reader, name, len(header))


def _delimiter(text: str) -> str | None:
    """The mark that the first line has most of; the sniffer takes decimal commas for columns."""
    first = text[:65_536].partition("\n")[0]
    counts = {mark: first.count(mark) for mark in ",;\t"}
    best = max(counts, key=lambda mark: counts[mark])
    return best if counts[best] and '"' not in first else None


def _dialect(text: str) -> type[csv.Dialect]:
    try:
        return csv.Sniffer().sniff(text[:16_384], delimiters=",;\t")
    except csv.Error:
        return csv.excel


def _checked(header: list[str], name: str) -> list[str]:
    if not header:
        raise InvalidInput(f"{name} is empty")
    if len(header) > MOST_COLUMNS:
        raise InvalidInput(f"{name} has {len(header)} columns and at most {MOST_COLUMNS} are read")
    seen: set[str] = set()
    twice = next((column for column in header if column in seen or _add(seen, column)), None)
    if twice is not None:
        raise InvalidInput(f"{name}: two columns are called {twice[:60]!r}: no two may have the same name")
    return header


def escaped(cell: str) -> str:
    """A cell that spreadsheets show and never run: what would begin a formula gets a quotation mark before it."""
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def unescaped(cell: str) -> str:
    """What `escaped` was given."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell


def _add(seen: set[str], column: str) -> bool:
    seen.add(column)
    return False


def _rows(reader: csv.DictReader[str], name: str, width: int) -> Iterator[dict[str, Any]]:
    try:
        for row in reader:
            more = dict[Any, Any](row).get(None)
            if more:
                found = width + len(more)
                raise InvalidInput(f"{name}, line {reader.line_num}: {found} cells under {width} columns")
            yield row
    except csv.Error as error:
        raise InvalidInput(f"{name}, line {reader.line_num}: cannot be read as CSV: {error}") from None
