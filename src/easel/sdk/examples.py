"""Files on this machine → pairs to feed and objects to ask about."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from easel.declare.csv_table import TABLES, decode_text, read_table_file
from easel.declare.pairs import objects_of_rows, pairs_of_rows
from easel.declare.program import Program
from easel.declare.styles import StyleBook
from easel.errors import InvalidInput
from easel.sdk.values import PICTURES


def read_declared(text: str) -> Program:
    """Read a program; the grammar's library is loaded only now, so that commands without programs start sooner."""
    from easel.declare.friendly import read_program

    return read_program(text)


def read_pairs(path: Path, program: Program, book: StyleBook | None = None) -> Iterator[tuple[Any, Any]]:
    """Reads pairs from a CSV file or an Excel workbook, or JSON lines {"input": …, "output": …}."""
    if path.suffix.lower() in TABLES:
        header, rows = _table(path)
        yield from pairs_of_rows(program, header, rows, book)
        return
    with _text(path) as lines:
        yield from json_pairs(lines)


def read_objects(path: Path, program: Program, book: StyleBook | None = None) -> Iterator[Any]:
    """Reads objects from a CSV file, JSON lines, one picture, or a folder of pictures in the order of their names."""
    if not path.exists():
        raise InvalidInput(f"there is no file or folder {path}")
    if path.is_dir():
        yield from pictures_in(path)
    elif path.suffix.lower() in (".npy", ".npz"):
        raise InvalidInput(
            f"{path.name}: ask about arrays from Python, client.apps.infer(name, list(x)), or as JSON lines"
        )
    elif path.suffix.lower() in PICTURES:
        yield path
    elif path.suffix.lower() in TABLES:
        header, rows = _table(path)
        yield from objects_of_rows(program, header, rows, book)
    else:
        asked = program.input.field_names
        with _text(path) as lines:
            for value in json_values(lines):
                fed = isinstance(value, dict) and "input" in value and set(value) <= {"input", "output"}
                yield value["input"] if fed and "input" not in asked else value


def rows_in(path: Path) -> list[dict[str, Any]]:
    """The rows of a table as they stand in its file; none of what is no table."""
    return [dict(row) for row in _table(path)[1]] if path.suffix.lower() in TABLES else []


def pictures_in(folder: Path) -> list[Path]:
    """Returns the pictures in the order in which they are asked about."""
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in PICTURES)


@contextmanager
def _text(path: Path) -> Iterator[Iterable[str]]:
    try:
        with _as_it_was(path), path.open(encoding="utf-8-sig") as lines:
            yield lines
    except UnicodeDecodeError:
        yield decode_text(path.read_bytes(), path.name).splitlines()


def json_pairs(lines: Iterable[str]) -> Iterator[tuple[Any, Any]]:
    for value in json_values(lines):
        if not isinstance(value, dict) or set(value) != {"input", "output"}:
            raise InvalidInput('each line is {"input": …, "output": …}')
        yield value["input"], value["output"]


def json_values(lines: Iterable[str]) -> Iterator[Any]:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InvalidInput(f"line {number} is not JSON: {error}") from None


def _table(path: Path) -> tuple[list[str], Iterator[dict[str, Any]]]:
    with _as_it_was(path):
        data = path.read_bytes()
    return read_table_file(data, path.name)


@contextmanager
def _as_it_was(path: Path) -> Iterator[None]:
    """Refuses a file that somebody wrote to while it was read: half a row may be in what was read."""
    before = path.stat()
    yield
    after = path.stat()
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise InvalidInput(
            f"{path.name} changed while it was read: try again when it is complete; "
            "what was fed of it stays, and feeding it again adds nothing twice"
        )
