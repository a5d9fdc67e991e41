"""Keyset pages over any select: the same sorting, filtering and cursors for every collection."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Generic, TypeVar

from sqlalchemy import Column, ColumnElement, Select, func, literal, select, tuple_
from sqlalchemy.types import Boolean, Float, Integer

from easel.declare.page import Filter, PageRequest
from easel.errors import InvalidInput
from easel.store.engine import AnyRow, Tx
from easel.store.schema.metadata import Moment

T = TypeVar("T")
U = TypeVar("U")

MAX_LIMIT = 500


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    items: Sequence[T]
    next_cursor: str | None

    def map(self, to: Callable[[T], U]) -> Page[U]:
        return Page([to(item) for item in self.items], self.next_cursor)


@dataclass(frozen=True)
class Collection:
    """What may be sorted and filtered. `key` is unique and breaks ties; columns sorted by are never NULL."""

    columns: Mapping[str, Column[Any]]
    key: str
    default_sort: str

    def fields(self) -> str:
        return ", ".join(sorted(self.columns))


def fetch(
    tx: Tx,
    query: Select[*tuple[Any, ...]],
    collection: Collection,
    request: PageRequest,
    given: Mapping[str, Any] | None = None,
) -> Page[AnyRow]:
    """One page of `query`, whose columns must include the sort column and the key.

    A query that is always the same object says so by its parameters, `given`: its first pages are built once.
    """
    if not 1 <= request.limit <= MAX_LIMIT:
        raise InvalidInput(f"limit must be between 1 and {MAX_LIMIT}, not {request.limit}")
    sort = request.sort or collection.default_sort
    descending = sort.startswith("-")
    by, key = _column(collection, sort.removeprefix("-")), collection.columns[collection.key]
    shape = _shape(sort, request.filters)
    if given is not None and not request.filters and request.cursor is None:
        query = _first_page(query, by, key, descending, request.limit)
    else:
        query = query.where(*conditions(collection, request.filters))
        if request.cursor is not None:
            last, last_key = _open_cursor(request.cursor, shape)
            query = query.where(_beyond(by, key, _typed(by, last), _typed(key, last_key), descending))
        query = _sorted(query, by, key, descending, request.limit)
    rows = tx.execute(query, given).all()
    items, more = rows[: request.limit], len(rows) > request.limit
    if not more:
        return Page(items, None)
    mapping = items[-1]._mapping
    return Page(items, _cursor(mapping[by], mapping[key], shape))


def _sorted(
    query: Select[*tuple[Any, ...]], by: Column[Any], key: Column[Any], descending: bool, limit: int
) -> Select[*tuple[Any, ...]]:
    """The query in this order, for one row more than the page has."""
    order = [by, key] if by is not key else [key]
    return query.order_by(*(c.desc() if descending else c.asc() for c in order)).limit(limit + 1)


_first_page = lru_cache(maxsize=256)(_sorted)
"""Building a statement costs several times as much as running it."""


def conditions(collection: Collection, filters: Sequence[Filter]) -> list[ColumnElement[bool]]:
    """What rows fulfil that pass all filters."""
    return [_condition(_column(collection, each.field), each) for each in filters]


def count(tx: Tx, query: Select[*tuple[Any, ...]]) -> int:
    return int(tx.execute(select(func.count()).select_from(query.subquery())).scalar_one())


def _beyond(
    by: Column[Any], key: Column[Any], last: Any, last_key: Any, descending: bool
) -> ColumnElement[bool]:
    beyond: ColumnElement[bool]
    if by is key:
        beyond = key < last_key if descending else key > last_key
        return beyond
    # Row values rather than `by < last OR (by = last AND …)`: an index leads straight to the place.
    here, there = tuple_(by, key), tuple_(literal(last, by.type), literal(last_key, key.type))
    beyond = here < there if descending else here > there
    return beyond


def _column(collection: Collection, name: str) -> Column[Any]:
    if name not in collection.columns:
        raise InvalidInput(f"there is no field {name[:40]!r} to sort or filter by: use {collection.fields()}")
    return collection.columns[name]


def _condition(column: Column[Any], condition: Filter) -> ColumnElement[bool]:
    if condition.operator == "prefix":
        return column.startswith(condition.value, autoescape=True)
    if condition.operator == "contains":
        return column.contains(condition.value, autoescape=True)
    if condition.operator == "in":
        return column.in_([_typed(column, value) for value in condition.value.split(",")])
    value = _typed(column, condition.value)
    if isinstance(value, bool) and condition.operator not in ("eq", "ne"):
        raise InvalidInput(f"{column.name!r} is true or false: compare it with eq or ne")
    found: ColumnElement[bool] = getattr(operator, condition.operator)(column, value)
    return found


def _typed(column: Column[Any], text: str) -> Any:
    """The value that `text` means for this column."""
    try:
        if isinstance(column.type, Moment):
            moment = datetime.fromisoformat(text)
            if moment.tzinfo is None:
                raise ValueError("the time has no zone")
            return moment
        if isinstance(column.type, Boolean):
            return {"true": True, "false": False}[text.lower()]
        if isinstance(column.type, Integer):
            number = int(text)
            if abs(number) >= 2**63:
                raise ValueError("the number is too large")
            return number
        if isinstance(column.type, Float):
            return float(text)
    except (ValueError, KeyError, OverflowError) as error:
        raise InvalidInput(f"{text[:40]!r} does not fit field {column.name!r}: {error}") from error
    if "\x00" in text:
        raise InvalidInput(f"a value for {column.name!r} contains a NUL character")
    return text


def _shape(sort: str, filters: Sequence[Filter]) -> str:
    """A cursor belongs to one sort and one set of filters; elsewhere it would skip rows silently."""
    text = json.dumps([sort, sorted((f.field, f.operator, f.value) for f in filters)])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _cursor(last: Any, key: Any, shape: str) -> str:
    shown = last.isoformat() if isinstance(last, datetime) else str(last)
    return base64.urlsafe_b64encode(json.dumps([shape, shown, str(key)]).encode()).decode().rstrip("=")


def _open_cursor(cursor: str, shape: str) -> tuple[str, str]:
    try:
        made_for, last, key = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if not (isinstance(last, str) and isinstance(key, str)):
            raise ValueError("not text")
    except (ValueError, TypeError, binascii.Error, RecursionError) as error:
        raise InvalidInput("the cursor is damaged: start again without one") from error
    if made_for != shape:
        raise InvalidInput("the cursor belongs to another sort or filter: start again without one")
    return last, key
