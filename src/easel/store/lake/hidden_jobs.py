"""Which jobs a grant hides, as a condition of the database: the same as `flow/lake/visible.py` decides of one job.

A search that left hidden jobs out of its answer only would tell by its pages and their ends whether they fulfil it.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, FromClause, and_, case, exists, false, func, literal, not_, or_, select

from easel.lake.access import Rights, Rule
from easel.store.schema.jobs import jobs


def hidden(rights: Rights) -> ColumnElement[bool]:
    """Whether a grant hides the job from whoever has these rights; never from its owner."""
    if not rights.paths and not rights.sets:
        return false()
    named = (jobs.c.code_set, jobs.c.input_set, jobs.c.output_set, jobs.c.spec["output_set"].as_string())
    return and_(jobs.c.user_id != rights.own, or_(*(unread(column, rights) for column in named)))


def not_hidden(rows: FromClause, rights: Rights) -> ColumnElement[bool]:
    """Whether an entry of the catalogue, if it is a job, is one that no grant hides."""
    return not_(
        exists(select(literal(1)).where(jobs.c.id == rows.c.name, hidden(rights)).correlate_except(jobs))
    )


def unread(column: ColumnElement[Any], rights: Rights) -> ColumnElement[bool]:
    """Whether a column names something that may not be read: `name:version` or `/@name:version`, or a path."""
    of_set = func.substr(column, 1, 2) == "/@"
    name = case((of_set, func.substr(column, 3)), else_=column)
    is_path = and_(func.substr(column, 1, 1) == "/", not_(of_set))
    read = case((is_path, _read(column, rights.paths)), else_=_read(name, rights.sets))
    return and_(column.is_not(None), read == 0)


def _read(name: ColumnElement[Any], rules: tuple[Rule, ...]) -> ColumnElement[int]:
    """1 where a name, with or without its version, may be read: the first rule that covers it decides."""
    whens = [(_covered(name, rule), literal(int(rule.may_read))) for rule in rules]
    return case(*whens, else_=literal(1)) if whens else literal(1)


def _covered(name: ColumnElement[Any], rule: Rule) -> ColumnElement[bool]:
    if rule.exact:
        return or_(name == rule.stem, func.substr(name, 1, len(rule.stem) + 1) == f"{rule.stem}:")
    return func.substr(name, 1, len(rule.stem)) == rule.stem
