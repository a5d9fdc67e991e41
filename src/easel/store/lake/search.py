"""Searches as SQL: each comparison is one range of one covering index, and the database joins them."""

from __future__ import annotations

import base64
import json
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Select,
    and_,
    false,
    literal,
    not_,
    or_,
    select,
    true,
    union_all,
)

from easel.errors import InvalidInput
from easel.ids import ProjectId, UserId
from easel.lake.access import Rights
from easel.lake.digest import from_hex
from easel.lake.query.ast import BUILT_IN, And, Compare, Day, Expression, Has, Key, Not, OneOf, Op, Or, Value
from easel.records.lake import Artifact, Kind
from easel.store.engine import Tx
from easel.store.lake.artifacts import COLUMNS, artifact, readable
from easel.store.lake.hidden_jobs import not_hidden
from easel.store.schema.lake import artifacts, tags

Condition = ColumnElement[bool]
FindUsers = Callable[[str], Sequence[UserId]]
"""Those who made something here under this name: names are unique only among the users of one home."""
_OPERATORS = {
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
}
WALK = 20
"""How many times the page may be walked over before its entries are gathered by index instead."""
_BY_COLUMN = {"name": "name", "version": "version", "size": "size", "create_time": "created_at"}


@dataclass(frozen=True, slots=True)
class Search:
    """`sort` is a key, or `-key` for the largest first; without one, the newest come first."""

    kind: Kind
    where: Expression
    sort: str = "-create_time"
    limit: int = 50
    cursor: str | None = None


def search(
    tx: Tx, project_id: ProjectId, rights: Rights, request: Search, find_users: FindUsers
) -> tuple[list[Artifact], str | None]:
    """A page of artifacts and the cursor of the next. Artifacts without the sort key are left out."""
    if request.sort == "-create_time" and request.cursor is None and isinstance(request.where, And | Compare):
        found = _among_the_newest(tx, project_id, rights, request, find_users)
        if found is not None:
            return found, _cursor(request, found[-1].created_at, found[-1].id)
    writer = _Writer(project_id, request.kind, artifacts, rights, find_users)
    key, descending = request.sort.removeprefix("-"), request.sort.startswith("-")
    query: Select[*tuple[Any, ...]] = select(*COLUMNS).where(
        artifacts.c.project_id == project_id, artifacts.c.kind == request.kind, _shown(request.kind, rights)
    )
    if key in _BY_COLUMN:
        by: ColumnElement[Any] = artifacts.c[_BY_COLUMN[key]]
    elif key in BUILT_IN:
        raise InvalidInput(f"sorting by {key} is not possible: use name, version, size, create_time or a tag")
    else:
        column = sort_column(tx, project_id, request.kind, key)
        by = tags.c[column]
        query = query.join(tags, tags.c.artifact_id == artifacts.c.id).where(
            tags.c.project_id == project_id, tags.c.kind == request.kind, tags.c.key == key, by.is_not(None)
        )
    query = query.add_columns(by.label("sorted_by")).where(writer.condition(request.where))
    last = tags.c.artifact_id if key not in _BY_COLUMN else artifacts.c.id
    if request.cursor:
        value, identity = _open(request, by)
        if descending:
            query = query.where(or_(by < value, and_(by == value, last < identity)))
        else:
            query = query.where(or_(by > value, and_(by == value, last > identity)))
    order = (by.desc(), last.desc()) if descending else (by.asc(), last.asc())
    rows = tx.execute(query.order_by(*order).limit(request.limit + 1)).all()
    found = [artifact(row[: len(COLUMNS)]) for row in rows[: request.limit]]
    if len(rows) <= request.limit:
        return found, None
    last_row = rows[request.limit - 1]
    return found, _cursor(request, last_row.sorted_by, last_row.id)


def matching(
    project_id: ProjectId, kind: Kind, rights: Rights, where: Expression, find_users: FindUsers
) -> Select[*tuple[Any, ...]]:
    """The ids of all artifacts that fulfil an expression, for a further query."""
    condition = _Writer(project_id, kind, artifacts, rights, find_users).condition(where)
    return select(artifacts.c.id).where(
        artifacts.c.project_id == project_id, artifacts.c.kind == kind, _shown(kind, rights), condition
    )


def _among_the_newest(
    tx: Tx, project_id: ProjectId, rights: Rights, request: Search, find_users: FindUsers
) -> list[Artifact] | None:
    """A full first page, if it lies among the newest few: what is common is found at once.

    The database cannot know which tags go together, so it gathers all that fulfil each comparison and sorts them. A
    walk from the newest on, with a look at each one's tags, ends with the page; where it would be long it is given up.
    """
    newest = (
        select(*COLUMNS)
        .where(
            artifacts.c.project_id == project_id,
            artifacts.c.kind == request.kind,
            _shown(request.kind, rights),
        )
        .order_by(artifacts.c.created_at.desc(), artifacts.c.id.desc())
        .limit(WALK * request.limit)
        .subquery("newest")
    )
    writer = _Walker(project_id, request.kind, newest, rights, find_users)
    query = select(newest).where(writer.condition(request.where)).limit(request.limit + 1)
    rows = tx.execute(query.order_by(newest.c.created_at.desc(), newest.c.id.desc())).all()
    return [artifact(row) for row in rows[: request.limit]] if len(rows) > request.limit else None


def _shown(kind: Kind, rights: Rights) -> Condition:
    """The entries of a kind that whoever has these rights may see; also of jobs, which `readable` shows to all."""
    if kind is Kind.JOB and (rights.paths or rights.sets):
        return not_hidden(artifacts, rights)
    return readable(rights)


def sort_column(tx: Tx, project_id: ProjectId, kind: Kind, key: str) -> str:
    """The type in which a key is used here: numbers before times before text."""
    for column in ("number", "moment", "text"):
        query = select(tags.c.artifact_id).where(
            tags.c.project_id == project_id, tags.c.kind == kind, tags.c.key == key
        )
        if tx.execute(query.where(tags.c[column].is_not(None)).limit(1)).first():
            return column
    return "number"


class _Writer:
    """Turns an expression into a condition on one row of the catalogue, or of an alias of it for jobs."""

    def __init__(
        self, project_id: ProjectId, kind: Kind, rows: FromClause, rights: Rights, find_users: FindUsers
    ) -> None:
        self._project_id, self._kind, self._rows = project_id, kind, rows
        self._rights, self._find_users = rights, find_users

    def condition(self, expression: Expression) -> Condition:
        match expression:
            case And(terms):
                return and_(true(), *(self.condition(term) for term in terms))
            case Or(terms):
                found = [self._tagged_ids(term) for term in terms]
                if len(found) > 1 and all(ids is not None for ids in found):
                    # One list of ids, which the database can begin with: an OR of lists can only be a filter.
                    return self._rows.c.id.in_(union_all(*(ids for ids in found if ids is not None)))
                return or_(false(), *(self.condition(term) for term in terms))
            case Not(term):
                return not_(self.condition(term))
            case Has(key):
                return self._on(key, lambda writer: writer._has(key))
            case OneOf(key, values):
                equal = Or(tuple(Compare(Key(key.name), Op.EQ, value) for value in values))
                return self._on(key, lambda writer: writer.condition(equal))
            case Compare(key, op, value):
                return self._on(key, lambda writer: writer._compare(key.name, op, value))

    def _on(self, key: Key, write: Callable[[_Writer], Condition]) -> Condition:
        """The condition itself, or that the job which made this fulfils it."""
        if not key.of_job:
            return write(self)
        jobs = artifacts.alias()
        there = _Writer(self._project_id, Kind.JOB, jobs, self._rights, self._find_users)
        found = select(jobs.c.id).where(
            jobs.c.project_id == self._project_id, jobs.c.kind == Kind.JOB, write(there)
        )
        if self._rights.paths or self._rights.sets:
            found = found.where(not_hidden(jobs, self._rights))
        # Spelt out, so that its negation also holds for what no job made.
        return and_(self._rows.c.made_by.is_not(None), self._rows.c.made_by.in_(found))

    def _has(self, key: Key) -> Condition:
        return true() if key.name in BUILT_IN else self._tagged(key.name, true())

    def _compare(self, key: str, op: Op, value: Value) -> Condition:
        match key:
            case "creator":
                return self._creator(op, value)
            case "hash":
                return _bytes(self._rows.c.digest, op, value)
            case "name":
                return _text(self._rows.c.name, op, value)
            case "create_time":
                return _moment(self._rows.c.created_at, op, value)
            case "size" | "version":
                return _number(self._rows.c[key], op, value)
        if op is Op.NE:  # also true where the key is missing
            return not_(self._compare(key, Op.EQ, value))
        return self._tagged(key, _tag_value(op, value))

    def _tagged(self, key: str, value: Condition) -> Condition:
        return self._rows.c.id.in_(self._ids(key, value))

    def _ids(self, key: str, value: Condition) -> Select[tuple[int]]:
        return select(tags.c.artifact_id).where(
            tags.c.project_id == self._project_id, tags.c.kind == self._kind, tags.c.key == key, value
        )

    def _tagged_ids(self, expression: Expression) -> Select[tuple[int]] | None:
        """The artifacts that one comparison of a tag names; None for anything else."""
        match expression:
            case Compare(key, op, value) if not (key.of_job or key.name in BUILT_IN or op is Op.NE):
                return self._ids(key.name, _tag_value(op, value))
        return None

    def _creator(self, op: Op, value: Value) -> Condition:
        if not isinstance(value, str) or op not in {Op.EQ, Op.NE}:
            raise InvalidInput("creator is compared with = or != to a user's name")
        same = self._rows.c.creator.in_(self._find_users(value))
        return same if op is Op.EQ else not_(same)


class _Walker(_Writer):
    """The same conditions as a look at each row's own tags, which the database cannot turn around."""

    def _tagged(self, key: str, value: Condition) -> Condition:
        own = select(literal(1)).where(tags.c.artifact_id == self._rows.c.id, tags.c.key == key, value)
        return own.limit(1).scalar_subquery().is_not(None)


def _tag_value(op: Op, value: Value) -> Condition:
    """The comparison, on the column of the value's type."""
    match value:
        case str():
            return _text(tags.c.text, op, value)
        case datetime() | Day():
            return _moment(tags.c.moment, op, value)
        case _:
            return _number(tags.c.number, op, value)


def _number(column: ColumnElement[Any], op: Op, value: Value) -> Condition:
    if not isinstance(value, float):
        raise InvalidInput(f"{value!r} is not a number")
    return _ordered(column, op, int(value) if value.is_integer() and abs(value) < 2**63 else value)


def _text(column: ColumnElement[Any], op: Op, value: Value) -> Condition:
    text = f"{value:g}" if isinstance(value, float) else value
    if not isinstance(text, str):
        raise InvalidInput("a time was given where text is compared: put the value in quotes")
    if "\0" in text:
        return false()
    if op is Op.MATCH:
        return column.regexp_match(text)
    if op is Op.PREFIX:
        return and_(column >= text, column < text + "\U0010ffff")
    return _ordered(column, op, text)


def _moment(column: ColumnElement[Any], op: Op, value: Value) -> Condition:
    if isinstance(value, Day):
        match op:
            case Op.EQ:
                return and_(column >= value.start, column < value.end)
            case Op.NE:
                return or_(column < value.start, column >= value.end)
            case Op.LT | Op.GE:
                return _ordered(column, op, value.start)
            case _:  # later than a day, or up to and including it
                return _ordered(column, Op.GE if op is Op.GT else Op.LT, value.end)
    if not isinstance(value, datetime):
        raise InvalidInput(f"{value!r} is not a time: write 2026-11-16, 2026-11-16T09:30, today or -7d")
    return _ordered(column, op, value)


def _bytes(column: ColumnElement[Any], op: Op, value: Value) -> Condition:
    if not isinstance(value, str) or op not in {Op.EQ, Op.NE}:
        raise InvalidInput("hash is compared with = or != to 64 hexadecimal digits")
    same = column == from_hex(value)
    return same if op is Op.EQ else not_(same)


def _ordered(column: ColumnElement[Any], op: Op, value: Any) -> Condition:
    if op not in _OPERATORS:
        raise InvalidInput(f"{op.value} compares text: put the value in quotes")
    found: Condition = _OPERATORS[op](column, value)
    return found


def _cursor(request: Search, value: Any, identity: int) -> str:
    shown = value.isoformat() if isinstance(value, datetime) else value
    text = json.dumps([request.kind, request.sort, shown, identity])
    return base64.urlsafe_b64encode(text.encode()).decode()


def _open(request: Search, by: ColumnElement[Any]) -> tuple[Any, int]:
    try:
        kind, sort, value, identity = json.loads(base64.urlsafe_b64decode(request.cursor or ""))
        if (kind, sort) != (request.kind, request.sort) or not isinstance(identity, int):
            raise ValueError("of another search")
        is_moment = isinstance(value, str) and by.type.__class__.__name__ == "Moment"
        return (datetime.fromisoformat(value) if is_moment else value), identity
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidInput("the cursor is damaged or of another search: start again without one") from error
