"""Rows of a Parquet file piece by piece: a few kilobytes of it may stand for any number of cells."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from easel.errors import InvalidInput

BATCH_ROWS = 20_000
MOST_CELLS = 2**29
"""Cells of one file: as many as a table of a gigabyte of text can have."""
MOST_LISTED = 2**26
"""Values in columns that hold lists: one row may have all of them."""
MOST_TEXT = 2**30
"""Bytes of text in the rows that are read at a time."""


def read_parquet(
    source: IO[bytes] | Path, name: str, rows_at_once: int = BATCH_ROWS
) -> tuple[list[str], Iterator[dict[str, Any]]]:
    """The names of the columns, and the rows by them; InvalidInput where it is none or too much."""
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.ParquetFile(source)
        texts = _checked(table.metadata, name)
        if texts:  # a text that stands in many rows is kept once
            table = pyarrow.parquet.ParquetFile(source, read_dictionary=texts)
        columns = list(table.schema_arrow.names)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise InvalidInput(f"{name} is not a Parquet file: {error}") from None
    return columns, _rows(table, name, rows_at_once)


def _checked(about: Any, name: str) -> list[str]:
    """The columns of text, of a file whose numbers of cells are bearable."""
    leaves = [about.schema.column(number) for number in range(about.num_columns)]
    if about.num_rows * max(1, len(leaves)) > MOST_CELLS:
        raise InvalidInput(f"{name} has {about.num_rows:,} rows of {len(leaves)} columns: feed it in parts")
    for number, leaf in enumerate(leaves):
        if leaf.max_repetition_level:
            groups = (about.row_group(group) for group in range(about.num_row_groups))
            listed = sum(group.column(number).num_values for group in groups)
            if listed > MOST_LISTED:
                raise InvalidInput(
                    f"{name} has {listed:,} values in the lists of {leaf.path}: feed it in parts"
                )
    return [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]


def _rows(table: Any, name: str, rows_at_once: int) -> Iterator[dict[str, Any]]:
    import pyarrow

    try:
        for batch in table.iter_batches(rows_at_once):
            if sum(_text_bytes(column) for column in batch.columns) > MOST_TEXT:
                raise InvalidInput(f"{name}: {rows_at_once:,} rows of it have more than a gigabyte of text")
            yield from batch.to_pylist()
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise InvalidInput(f"{name} is not a Parquet file: {error}") from None


def _text_bytes(column: Any) -> int:
    """How many bytes the texts of a column have, each as often as it stands there."""
    import pyarrow
    import pyarrow.compute

    if pyarrow.types.is_map(column.type):
        return _text_bytes(column.keys) + _text_bytes(column.items)
    if pyarrow.types.is_nested(column.type):
        parts = column.flatten()
        return sum(map(_text_bytes, parts)) if isinstance(parts, list) else _text_bytes(parts)
    if not pyarrow.types.is_dictionary(column.type):
        return 0
    lengths = pyarrow.compute.binary_length(column.dictionary)
    return int(pyarrow.compute.sum(lengths.take(column.indices)).as_py() or 0)
