"""Objects to be scored, read from files piece by piece: a table of any length needs no more memory than a batch."""

from __future__ import annotations

import codecs
import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import tee
from pathlib import Path
from typing import Any

from easel.declare.broken_files import BROKEN_ARRAY
from easel.declare.csv_table import TABLES, csv_rows, read_table_file
from easel.declare.pairs import objects_of_rows
from easel.declare.program import Program
from easel.declare.propose import PICTURES
from easel.declare.styles import StyleBook, Styles, restyle
from easel.errors import InvalidInput
from easel.flow.apps.parquet import read_parquet
from easel.match.raw import Picture

READ = (*TABLES, ".parquet", ".jsonl", ".npy", *PICTURES)
"""Endings of files that can be scored."""
PIECE = 2**20
PARQUET_ROWS = 1_000


@dataclass(frozen=True)
class AskedRow:
    """One object: the cells that are repeated beside its answer, the object itself, and where it stands."""

    cells: Mapping[str, Any]
    value: Any
    where: str


def objects_in(
    folder: Path,
    files: list[Path],
    program: Program,
    styles: Styles | None = None,
    note: Callable[[Sequence[str]], None] = lambda words: None,
) -> Iterator[AskedRow]:
    """The objects of all files, in the order of the files' names, written as the app's `styles` say; `note` is told of
    a file that contradicts them.
    """
    for path in files:
        name = path.relative_to(folder).as_posix()
        book = StyleBook(styles)
        for number, (cells, value) in enumerate(_objects(path, name, program, book), start=1):
            if number == 1:
                note(book.notes)
            named = {"file": name, **cells} if len(files) > 1 or not cells else cells
            yield AskedRow(named, value, name if path.suffix.lower() in PICTURES else f"{name}, row {number}")


def _objects(
    path: Path, name: str, program: Program, book: StyleBook
) -> Iterator[tuple[Mapping[str, Any], Any]]:
    kind = path.suffix.lower()
    if kind in PICTURES:
        yield {}, Picture(path.read_bytes(), "pad")
    elif kind in (".csv", ".tsv"):
        with path.open(encoding=encoding_of(path), errors="replace", newline="") as text:
            yield from _beside(program, book, *csv_rows(text, name))
    elif kind == ".xlsx":
        yield from _beside(program, book, *read_table_file(path.read_bytes(), name))
    elif kind == ".parquet":
        yield from _parquet(path, name, program, book)
    elif kind == ".npy":
        yield from _array(path, name)
    else:
        for cells, value in _json_lines(path, name, program):
            yield cells, restyle(program.input, "input", value, book.known)


def _beside(
    program: Program, book: StyleBook, header: list[str], rows: Iterator[dict[str, Any]]
) -> Iterator[tuple[Mapping[str, Any], Any]]:
    shown, asked = tee(rows)
    yield from zip(shown, objects_of_rows(program, header, asked, book), strict=True)


def encoding_of(path: Path) -> str:
    """UTF-8 or UTF-16 with its mark, or the Western European encoding of older programs; read once, piece by piece."""
    with path.open("rb") as file:
        first = file.read(4)
        if first.startswith((b"\xff\xfe", b"\xfe\xff")):
            return "utf-16"
        if first[:2] == b"PK":
            raise InvalidInput(f"{path.name} is not text: rename it to what it is, .xlsx or .parquet")
        file.seek(0)
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            while piece := file.read(PIECE):
                decoder.decode(piece)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "cp1252"
    return "utf-8-sig"


def _parquet(
    path: Path, name: str, program: Program, book: StyleBook
) -> Iterator[tuple[Mapping[str, Any], Any]]:
    yield from _beside(program, book, *read_parquet(path, name, PARQUET_ROWS))


def _array(path: Path, name: str) -> Iterator[tuple[Mapping[str, Any], Any]]:
    import numpy as np

    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except BROKEN_ARRAY as error:
        raise InvalidInput(f"{name} is not an npy file of a plain array: {error}") from None
    if array.ndim == 0:
        raise InvalidInput(f"{name} holds one number, not a list of objects")
    for one in array:
        yield {}, np.asarray(one)


def _json_lines(path: Path, name: str, program: Program) -> Iterator[tuple[Mapping[str, Any], Any]]:
    named = program.input.field_names
    with path.open(encoding=encoding_of(path), errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InvalidInput(f"{name}, line {number} is not JSON: {error}") from None
            fed = isinstance(value, dict) and "input" in value and set(value) <= {"input", "output"}
            if fed and "input" not in named:
                value = value["input"]
            plain = isinstance(value, dict) and all(
                part is None or isinstance(part, str | int | float | bool) for part in value.values()
            )
            yield (value if plain else {"row": number}), value


class CsvWriter:
    """A CSV file whose columns are those of its first row; cells of other names are left out and told of."""

    def __init__(self, path: Path, columns: list[str]) -> None:
        self._file = path.open("w", newline="", encoding="utf-8")
        self._writer = csv.DictWriter(self._file, columns, extrasaction="ignore")
        self._writer.writeheader()

    def write(self, row: Mapping[str, Any]) -> None:
        self._writer.writerow(row)

    def close(self) -> None:
        self._file.close()
