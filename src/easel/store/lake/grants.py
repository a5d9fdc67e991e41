"""Queries on grants and groups."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import bindparam, delete, insert, select

from easel.declare.roles import Role
from easel.ids import ProjectId, UserId
from easel.lake.access import EVERYTHING, Grant, Rights, Scope, rights
from easel.records.identity import Caller
from easel.store.engine import Tx
from easel.store.schema.identity import users
from easel.store.schema.lake import grants, group_members
from easel.store.upsert import insert_or

_RIGHTS = "rights"


def rights_of(tx: Tx, caller: Caller) -> Rights:
    """What the caller may read and write in their project."""
    if caller.role is Role.ADMIN:
        return EVERYTHING
    key = (_RIGHTS, caller.project_id, caller.user.id)
    if key not in tx.remembered:
        tx.remembered[key] = _read_rights(tx, caller)
    known: Rights = tx.remembered[key]
    return known


def remember_no_grants(tx: Tx, caller: Caller) -> None:
    """Notes that the caller's project has no grants, so that this transaction need not ask."""
    tx.remembered.setdefault((_RIGHTS, caller.project_id, caller.user.id), EVERYTHING)


def _read_rights(tx: Tx, caller: Caller) -> Rights:
    found = list_grants(tx, caller.project_id)
    if not found:
        return EVERYTHING
    groups = groups_of(tx, caller.project_id, caller.user.id)
    mine = rights(found, frozenset({f"user:{caller.user.id}", *(f"group:{name}" for name in groups)}))
    return replace(mine, own=caller.user.id)


_GRANTS = (
    select(grants.c.scope, grants.c.pattern, grants.c.principal, grants.c.may_read, grants.c.may_write)
    .where(grants.c.project_id == bindparam("of_project"))
    .order_by(grants.c.scope, grants.c.pattern, grants.c.principal)
)


def list_grants(tx: Tx, project_id: ProjectId) -> list[Grant]:
    rows = tx.execute(_GRANTS, {"of_project": project_id})
    return [Grant(Scope(scope), *rest) for scope, *rest in rows]


def put_grant(tx: Tx, project_id: ProjectId, grant: Grant) -> None:
    tx.remembered.clear()
    made = insert_or(tx, grants).values(
        project_id=project_id,
        scope=grant.scope,
        pattern=grant.pattern,
        principal=grant.principal,
        may_read=grant.may_read,
        may_write=grant.may_write,
    )
    tx.execute(
        made.on_conflict_do_update(
            index_elements=["project_id", "scope", "pattern", "principal"],
            set_={"may_read": grant.may_read, "may_write": grant.may_write},
        )
    )


def remove_grant(tx: Tx, project_id: ProjectId, scope: Scope, pattern: str, principal: str) -> bool:
    tx.remembered.clear()
    gone = tx.execute(
        delete(grants).where(
            grants.c.project_id == project_id,
            grants.c.scope == scope,
            grants.c.pattern == pattern,
            grants.c.principal == principal,
        )
    )
    return gone.rowcount == 1


def groups_of(tx: Tx, project_id: ProjectId, user_id: UserId) -> list[str]:
    query = select(group_members.c.name).where(
        group_members.c.project_id == project_id, group_members.c.user_id == user_id
    )
    return list(tx.execute(query.order_by(group_members.c.name)).scalars())


def list_groups(tx: Tx, project_id: ProjectId) -> dict[str, list[str]]:
    """The names of the members of each group."""
    query = (
        select(group_members.c.name, users.c.name.label("user"))
        .join(users, users.c.id == group_members.c.user_id)
        .where(group_members.c.project_id == project_id)
        .order_by(group_members.c.name, users.c.name)
    )
    found: dict[str, list[str]] = {}
    for name, user in tx.execute(query):
        found.setdefault(name, []).append(user)
    return found


def set_group(tx: Tx, project_id: ProjectId, name: str, user_ids: list[UserId]) -> None:
    """The group has exactly these members from now on; without any it is gone."""
    tx.remembered.clear()
    tx.execute(
        delete(group_members).where(group_members.c.project_id == project_id, group_members.c.name == name)
    )
    rows = [{"project_id": project_id, "name": name, "user_id": u} for u in sorted(set(user_ids))]
    if rows:
        tx.execute(insert(group_members), rows)
