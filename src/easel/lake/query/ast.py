"""What a search asks for, as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

BUILT_IN = frozenset({"creator", "create_time", "size", "version", "hash", "name"})
"""Keys that every artifact has; a tag cannot have these names."""


class Op(StrEnum):
    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    MATCH = "~"
    PREFIX = "^="


@dataclass(frozen=True, slots=True)
class Day:
    """A whole day, as in `create_time = today`: from `start` to before `end`."""

    start: datetime
    end: datetime


Value = str | float | datetime | Day


@dataclass(frozen=True, slots=True)
class Key:
    """`job.` before a key asks for the job that made the artifact."""

    name: str
    of_job: bool = False

    def __str__(self) -> str:
        return f"job.{self.name}" if self.of_job else self.name


@dataclass(frozen=True, slots=True)
class Compare:
    key: Key
    op: Op
    value: Value


@dataclass(frozen=True, slots=True)
class OneOf:
    key: Key
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Has:
    key: Key


@dataclass(frozen=True, slots=True)
class Not:
    of: Expression


@dataclass(frozen=True, slots=True)
class And:
    of: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    of: tuple[Expression, ...]


Expression = Compare | OneOf | Has | Not | And | Or

EVERYTHING = And(())
