"""CSV as people write it: commas, semicolons or tabs; a file that is something else is refused with its line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from easel.errors import InvalidInput

LONGEST_CELL = 2**22
csv.field_size_limit(LONGEST_CELL)


def read_csv(text: str, name: str) -> tuple[list[str], Iterator[dict[str, Any]]]:
    """The names of the columns, and the rows by them. Cells that a row is short of are None."""
    try:
        dialect: type[csv.Dialect] = csv.Sniffer().sniff(text[:16_384], delimiters=",;\t")
    except csv.Error:
        dialect = csv.excel
    reader = csv.DictReader(io.StringIO(text, newline=""), dialect=dialect)
    try:
        header = [str(column) for column in reader.fieldnames or ()]
    except csv.Error as error:
        raise InvalidInput(f"{name} cannot be read as CSV: {error}") from None
    if not header:
        raise InvalidInput(f"{name} is empty")
    twice = next((column for column in header if header.count(column) > 1), None)
    if twice is not None:
        raise InvalidInput(f"{name}: two columns are called {twice[:60]!r}")
    return header, _rows(reader, name, len(header))


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
