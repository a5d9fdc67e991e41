"""Tags that jobs give to themselves and to what they make, by printing a line."""

from __future__ import annotations

from easel.store.engine import AnyRow, Tx


def tag_from_log(tx: Tx, row: AnyRow, of: str, key: str, value: str | float) -> None:
    """`of` is `job`, `fileset` for the job's own output, or the name of a file set."""
