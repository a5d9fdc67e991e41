"""DataFrames in and out, without pandas being a dependency: whoever has a frame has it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeGuard, runtime_checkable


@runtime_checkable
class TableFrame(Protocol):
    """As much of a pandas or polars DataFrame as is needed here."""

    @property
    def columns(self) -> Any: ...

    def __len__(self) -> int: ...


def is_frame(value: object) -> TypeGuard[TableFrame]:
    return hasattr(value, "columns") and (hasattr(value, "to_dict") or hasattr(value, "iter_rows"))


def table_of(frame: Any) -> tuple[list[str], Iterator[dict[str, Any]]]:
    """The header and the rows, as a CSV file would give them: missing cells are empty."""
    header = [str(name) for name in frame.columns]
    rows = frame.iter_rows() if hasattr(frame, "iter_rows") else frame.itertuples(index=False, name=None)
    return header, ({name: _cell(value) for name, value in zip(header, row, strict=True)} for row in rows)


def _cell(value: Any) -> Any:
    if hasattr(value, "item") and not hasattr(value, "__len__"):
        value = value.item()  # NumPy's own numbers
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return value if isinstance(value, str) else str(value)


def frame_of(answers: Sequence[Mapping[str, Any]], like: Any) -> Any:
    """A frame of the same library as `like`; nested answers (probabilities by class) become columns `name.class`."""
    rows = [_flat(answer) for answer in answers]
    made = type(like)(rows)
    if hasattr(like, "index"):
        made.index = like.index
    return made


def _flat(answer: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in answer.items():
        if isinstance(value, Mapping) and not any(str(key).startswith("$") for key in value):
            found |= _flat(value, f"{before}{name}.")
        else:
            found[f"{before}{name}"] = value
    return found
