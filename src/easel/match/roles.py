"""Columns that are a group or a time: folds that keep groups together or the future out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from easel.declare.program import ROLES, ColumnRole, DataType, Field, Program, Tensor
from easel.errors import InvalidInput
from easel.match.examples import Example, Single
from easel.match.split import FOLDS


def role_value(program: Program, role: ColumnRole, example: Example) -> str | float | None:
    """Returns the value of the column with this role; None where it is missing or there is no such column."""
    place = program.column_of(role)
    if place is None or not isinstance(example.input, Single):
        return None
    value = example.input.values[place]
    return None if isinstance(value, np.ndarray) or value != value else value


def marked_value(program: Program, example: Example) -> str:
    """Returns `patient = 7` where the program marks a group or a time; empty for others, or where it is missing."""
    for role in ROLES:
        value = role_value(program, role, example)
        if value is not None:
            return (
                f"{_name(program, role)} = {value:g}"
                if isinstance(value, float)
                else f"{_name(program, role)} = {value}"
            )
    return ""


def only_value(before: str | None, new: set[str]) -> str:
    """The one value of all examples, of what was known `before` (None: nothing was fed) and what is new."""
    known = new if before is None else {before, *new}
    return next(iter(known))[:200] if len(known) == 1 else ""


def own_folds(program: Program, examples: Sequence[Example], folds: Sequence[int]) -> list[int]:
    """The folds by group or by time where the program marks one; otherwise those that were given.

    Groups are dealt to the folds, large ones first, each to the fold with the fewest examples. Times are cut into five
    spans of about as many examples, oldest first; examples of one moment stay together. Who has no group is one of
    their own, and who has no time counts as oldest.
    """
    if program.column_of("group") is not None:
        return _by_group(program, [role_value(program, "group", one) for one in examples])
    if program.column_of("time") is not None:
        return _by_time(program, [role_value(program, "time", one) for one in examples])
    return list(folds)


def _by_group(program: Program, groups: Sequence[str | float | None]) -> list[int]:
    named = [f"?{k}" if group is None else str(group) for k, group in enumerate(groups)]
    counts = Counter(named)
    if len(counts) == 1 and len(named) > 1:
        raise InvalidInput(
            f"all {len(named):,} examples are of one group ({_name(program, 'group')} = {named[0][:60]}): "
            "feed another group, or declare the app without `as group`"
        )
    return group_folds(groups)


def group_folds(groups: Sequence[str | float | None], *, large_first: bool = True) -> list[int]:
    """Returns a fold for each example, one for all of a group: the least filled, for large groups first or in order."""
    named = [f"?{k}" if group is None else str(group) for k, group in enumerate(groups)]
    counts = Counter(named)
    filled, home = [0] * FOLDS, dict[str, int]()
    dealt = sorted(counts.items(), key=lambda one: (-one[1], one[0])) if large_first else counts.items()
    for group, count in dealt:
        fold = min(range(FOLDS), key=lambda k: (filled[k], k))
        home[group] = fold
        filled[fold] += count
    return [home[group] for group in named]


def _by_time(program: Program, times: Sequence[str | float | None]) -> list[int]:
    moments = np.array([float(t) if isinstance(t, float) else -np.inf for t in times])
    known = sorted(set(moments.tolist()))
    if len(known) == 1 and len(moments) > 1:
        raise InvalidInput(
            f"all {len(moments):,} examples have the same {_name(program, 'time')}: there is no future to keep out; "
            "declare the app without `as time`"
        )
    values, counts = np.unique(moments, return_counts=True)
    # The middle of each moment's examples, as a share of all: ties are never cut.
    middle = (np.cumsum(counts) - counts / 2) / len(moments)
    span = np.minimum((middle * FOLDS).astype(int), FOLDS - 1)
    if len(set(span.tolist())) == 1:
        span = (np.arange(len(values)) >= len(values) // 2).astype(int)
    placed: list[int] = span[np.searchsorted(values, moments)].tolist()
    return placed


def _name(program: Program, role: ColumnRole) -> str:
    place = program.column_of(role)
    return "" if place is None else program.input.field_names[place]


def without_time(program: Program) -> Program:
    """The same program with no column marked as time."""
    return Program(
        DataType(tuple(_plain(f) for f in program.input.fields), program.input.pointers), program.output
    )


def _plain(field: Field) -> Field:
    return field if isinstance(field, Tensor) or field.role != "time" else replace(field, role=None)
