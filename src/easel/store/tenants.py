"""Queries on tenants: the terms that people set, whose turn it was, and the count of all starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import bindparam, delete, insert, select, update

from easel.ids import ProjectId
from easel.records.tenant import PoolTurn, TermLimits, Terms
from easel.store.engine import AnyRow, Tx
from easel.store.schema.tenants import pool_turns, tenant_limits, tenants
from easel.store.upsert import chunks, insert_or

_ONLY = 1
_TURN = select(pool_turns.c.turn, pool_turns.c.as_of).where(pool_turns.c.id == _ONLY)
_NEXT = (
    update(pool_turns)
    .where(pool_turns.c.id == _ONLY, pool_turns.c.turn == bindparam("seen"))
    .values(turn=bindparam("following"))
)
_SERVED = (
    update(tenants)
    .where(tenants.c.id == bindparam("of_tenant"))
    .values(served_at=bindparam("at_turn"), asked=False)
)
_ONE = select(tenants).where(tenants.c.id == bindparam("of_tenant"))


def turn(tx: Tx) -> PoolTurn:
    row = tx.execute(_TURN).first()
    return PoolTurn() if row is None else PoolTurn(row.turn, row.as_of)


def open_turns(tx: Tx) -> None:
    """Make the row that counts, if there is none."""
    made = insert_or(tx, pool_turns).values(id=_ONLY, turn=0, as_of=0)
    tx.execute(made.on_conflict_do_nothing())


def take_turn(tx: Tx, seen: int) -> bool:
    """The next start, if no other was made since `seen`."""
    return bool(tx.execute(_NEXT, {"seen": seen, "following": seen + 1}).rowcount == 1)


def learn_until(tx: Tx, seen: PoolTurn, as_of: int) -> bool:
    """Lets beliefs be learned from the past trials up to `as_of`, unless somebody was quicker."""
    done = tx.execute(
        update(pool_turns)
        .where(pool_turns.c.id == _ONLY, pool_turns.c.as_of == seen.as_of)
        .values(as_of=as_of)
    )
    return bool(done.rowcount == 1)


def all_terms(tx: Tx) -> dict[str, Terms]:
    """Returns the terms of every project, by tenant."""
    return {row.id: _terms(row) for row in tx.execute(select(tenants))}


def terms(tx: Tx, tenant: str) -> Terms:
    row = tx.execute(_ONE, {"of_tenant": tenant}).first()
    return Terms() if row is None else _terms(row)


def some_terms(tx: Tx, ids: list[str]) -> dict[str, Terms]:
    """Returns the terms of each of these; what nobody said anything about has the usual ones."""
    found = dict.fromkeys(ids, Terms())
    for some in chunks(ids):
        found |= {row.id: _terms(row) for row in tx.execute(select(tenants).where(tenants.c.id.in_(some)))}
    return found


def put(tx: Tx, project_id: ProjectId, tenant: str, **values: Any) -> None:
    """Set these terms and leave the others as they are."""
    made = insert_or(tx, tenants).values(id=tenant, project_id=project_id, **values)
    tx.execute(made.on_conflict_do_update(index_elements=["id"], set_=values))


def join(tx: Tx, joined: Mapping[str, ProjectId], at_turn: int) -> None:
    """Lets these wait from this turn on."""
    for tenant, project_id in joined.items():
        put(tx, project_id, tenant, served_at=at_turn)


def serve(tx: Tx, served: list[str], at_turn: int) -> None:
    """Notes whose turn it was; who had asked to go on although little is expected has been heard."""
    tx.execute(_SERVED, [{"of_tenant": tenant, "at_turn": at_turn} for tenant in served])


def remove(tx: Tx, tenant: str) -> None:
    tx.execute(delete(tenants).where(tenants.c.id == tenant))


def limits(tx: Tx, project_id: ProjectId) -> TermLimits:
    row = tx.execute(select(tenant_limits).where(tenant_limits.c.project_id == project_id)).first()
    return TermLimits() if row is None else TermLimits(row.max_weight, row.max_budget_micros)


def set_limits(tx: Tx, project_id: ProjectId, wanted: TermLimits) -> None:
    tx.execute(delete(tenant_limits).where(tenant_limits.c.project_id == project_id))
    tx.execute(
        insert(tenant_limits).values(
            project_id=project_id,
            max_weight=wanted.max_weight,
            max_budget_micros=wanted.max_budget_micros,
        )
    )


def _terms(row: AnyRow) -> Terms:
    return Terms(
        row.weight,
        row.deadline,
        row.budget_micros,
        row.until,
        row.paused_at,
        row.paused_by,
        row.asked,
        row.served_at,
    )
