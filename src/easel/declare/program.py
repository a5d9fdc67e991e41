"""A program: what goes in and what comes out (ease.ml §3, figure 3), as frozen values.

An object is a list of fields plus a list of pointers to objects of the same type: no pointer makes a single
object, one a chain (a series), two or more a tree. The text of a program is in `parse`, its friendlier
forms in `friendly` and `hints`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from easel.errors import InvalidInput

MAX_SIDE = 65_536
MAX_CELLS = 2**26
MAX_FIELDS = 10_000
MAX_CLASSES = 100_000
MAX_POINTERS = 16

_PLAIN_NAME = re.compile(r"[a-z0-9]+\Z")
_PLAIN_VALUE = re.compile(r"[A-Za-z0-9_.+-]+\Z")


ColumnRole = Literal["group", "time"]
"""What a column is for beside being an input: examples of one group stay together, the future stays out."""
ROLES: tuple[ColumnRole, ...] = ("group", "time")


class ProgramError(InvalidInput):
    """The program cannot be understood; the message shows the place."""

    kind = "invalid-program"


@dataclass(frozen=True)
class Tensor:
    """An array of constant shape; `None` stands for a side that varies from example to example (`?`).

    As the only output, `Tensor[D]` with D ≥ 2 is a class vector, as in the paper, and `Tensor[1]` a number.
    """

    shape: tuple[int | None, ...]
    name: str | None = None

    def __post_init__(self) -> None:
        if not self.shape:
            raise ProgramError("a Tensor needs at least one dimension, such as Tensor[5]")
        for side in self.shape:
            if side is not None and not 1 <= side <= MAX_SIDE:
                raise ProgramError(f"a dimension must be between 1 and {MAX_SIDE:,}; this one is {side:,}")
        if math.prod(side or 1 for side in self.shape) > MAX_CELLS:
            raise ProgramError(f"a Tensor may hold at most {MAX_CELLS:,} numbers; this one holds more")

    @property
    def rank(self) -> int:
        return len(self.shape)


@dataclass(frozen=True)
class Number:
    """`count` real numbers: a table column when 1, a vector when more. As an output: regression."""

    count: int = 1
    name: str | None = None
    optional: bool = False
    role: ColumnRole | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.count <= MAX_SIDE:
            raise ProgramError(f"Number[k] needs k between 1 and {MAX_SIDE:,}, not {self.count:,}")


@dataclass(frozen=True)
class Category:
    """One of some names; without `values`, whatever the examples hold. As an output: classes."""

    values: tuple[str, ...] = ()
    name: str | None = None
    optional: bool = False
    role: ColumnRole | None = None

    def __post_init__(self) -> None:
        twice = (
            sorted({v for v in self.values if self.values.count(v) > 1}) if len(self.values) < 1000 else []
        )
        if twice or len(set(self.values)) < len(self.values):
            raise ProgramError(f"a Category lists the same value twice: {', '.join(twice) or 'see the list'}")
        if len(self.values) > MAX_CLASSES:
            raise ProgramError(f"a Category may list at most {MAX_CLASSES:,} values")


@dataclass(frozen=True)
class Text:
    """A string of words."""

    name: str | None = None
    optional: bool = False
    role: ColumnRole | None = None


@dataclass(frozen=True)
class Date:
    """A day, or a moment of a day: a table column. Models see its year, season, weekday and hour."""

    name: str | None = None
    optional: bool = False
    role: ColumnRole | None = None


Field = Tensor | Number | Category | Text | Date


@dataclass(frozen=True)
class DataType:
    """`{fields, pointers}`: the non-recursive and the recursive part of an object."""

    fields: tuple[Field, ...]
    pointers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.fields) > MAX_FIELDS:
            raise ProgramError(f"an object may have at most {MAX_FIELDS:,} fields, not {len(self.fields):,}")
        if len(self.pointers) > MAX_POINTERS:
            raise ProgramError(f"an object may have at most {MAX_POINTERS} pointers")
        seen: set[str] = set()
        for name in [*(f.name for f in self.fields if f.name is not None), *self.pointers]:
            if name in seen:
                raise ProgramError(f'the name "{name}" is used twice in one object; give each its own')
            seen.add(name)

    @cached_property
    def field_names(self) -> tuple[str, ...]:
        """Given names, and `x0`, `x1`, … (by position, skipping taken names) for fields that have none."""
        taken = {f.name for f in self.fields if f.name is not None} | set(self.pointers)
        names = []
        for position, field in enumerate(self.fields):
            name = field.name
            if name is None:
                name = "x" if len(self.fields) == 1 else f"x{position}"
                while name in taken:
                    name += "x"
            names.append(name)
        return tuple(names)


@dataclass(frozen=True)
class Program:
    """What an app learns: a function from `input` objects to `output` objects."""

    input: DataType
    output: DataType

    def __post_init__(self) -> None:
        if not self.input.fields:
            raise ProgramError("the input has no field: nothing could be learned from it")
        if not self.output.fields:
            raise ProgramError("the output has no field: there would be nothing to predict")
        _check_roles(self.input, self.output)

    def column_of(self, role: ColumnRole) -> int | None:
        """Returns the place of the input field that has this role."""
        return next((k for k, field in enumerate(self.input.fields) if role_of(field) == role), None)

    def __str__(self) -> str:
        return f"{{input: {write_data_type(self.input)}, output: {write_data_type(self.output)}}}"


def is_picture(field: Field) -> bool:
    """Whether a field holds pictures: two sides, or two sides and channels."""
    return isinstance(field, Tensor) and field.rank in (2, 3)


def role_of(field: Field) -> ColumnRole | None:
    """Returns what a field is for beside being an input."""
    return None if isinstance(field, Tensor) else field.role


def _check_roles(source: DataType, target: DataType) -> None:
    roles = [role for field in source.fields if (role := role_of(field)) is not None]
    if any(role_of(field) is not None for field in target.fields):
        raise ProgramError("a group or a time belongs to the input: what is predicted can be neither")
    if not roles:
        return
    if source.pointers:
        raise ProgramError("a group or a time is a column of a table: series and trees have none")
    if len(roles) > 1:
        raise ProgramError("mark one column, as group or as time: folds can follow only one of them")
    if len(source.fields) == 1:
        raise ProgramError(f"the {roles[0]} is the only input: add columns to learn from")
    field = next(field for field in source.fields if role_of(field) is not None)
    fits = (Date, Number) if roles[0] == "time" else (Category, Text, Number)
    if not isinstance(field, fits) or (isinstance(field, Number) and field.count > 1):
        kinds = "a Date or a Number" if roles[0] == "time" else "a Category, a Text or a Number"
        raise ProgramError(f"{kinds} can be the {roles[0]}, this field cannot")


def write_data_type(data_type: DataType) -> str:
    """The text that `parse` reads back as the same value."""
    fields = ", ".join(write_field(field) for field in data_type.fields)
    return f"{{[{fields}], [{', '.join(_name(p) for p in data_type.pointers)}]}}"


def write_field(field: Field) -> str:
    prefix = "" if field.name is None else f"{_name(field.name)} :: "
    match field:
        case Tensor(shape):
            return f"{prefix}Tensor[{', '.join('?' if side is None else str(side) for side in shape)}]"
        case Number(count):
            body = "Number" if count == 1 else f"Number[{count}]"
        case Category(values):
            listed = ", ".join(v if _PLAIN_VALUE.match(v) else _quote(v) for v in values)
            body = f"Category[{listed}]" if values else "Category"
        case Text():
            body = "Text"
        case Date():
            body = "Date"
    role = f" as {field.role}" if field.role else ""
    return f"{prefix}{body}{'?' if field.optional else ''}{role}"


def _name(name: str) -> str:
    return name if _PLAIN_NAME.match(name) else _quote(name)


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
