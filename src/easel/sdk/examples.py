"""Files on this machine → pairs to feed and objects to ask about."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from easel.declare.csv_table import read_csv
from easel.declare.pairs import objects_of_rows, pairs_of_rows
from easel.declare.program import Program
from easel.errors import InvalidInput
from easel.sdk.values import PICTURES


def read_pairs(path: Path, program: Program) -> Iterator[tuple[Any, Any]]:
    """From a CSV file, or JSON lines {"input": …, "output": …}."""
    if path.suffix.lower() in (".csv", ".tsv"):
        header, rows = _table(path)
        yield from pairs_of_rows(program, header, rows)
        return
    with path.open(encoding="utf-8") as lines:
        yield from json_pairs(lines)


def read_objects(path: Path, program: Program) -> Iterator[Any]:
    """From a CSV file, JSON lines, one picture, or a folder of pictures in the order of their names."""
    if not path.exists():
        raise InvalidInput(f"there is no file or folder {path}")
    if path.is_dir():
        yield from sorted(p for p in path.rglob("*") if p.suffix.lower() in PICTURES)
    elif path.suffix.lower() in PICTURES:
        yield path
    elif path.suffix.lower() in (".csv", ".tsv"):
        header, rows = _table(path)
        yield from objects_of_rows(program, header, rows)
    else:
        with path.open(encoding="utf-8") as lines:
            yield from json_values(lines)


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
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path.name} is not UTF-8 text: {error}") from None
    return read_csv(text, path.name)
