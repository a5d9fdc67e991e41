"""A project's admins say who may read and write which paths and file sets."""

from __future__ import annotations

from collections.abc import Sequence

from easel.declare.names import slug
from easel.errors import NotFound
from easel.lake.access import Grant, Scope, principal, split
from easel.records.identity import Caller
from easel.store.engine import Tx
from easel.store.identity import get_member
from easel.store.lake import grants


def put_grant(
    tx: Tx, caller: Caller, scope: Scope, pattern: str, whom: str, *, read: bool, write: bool
) -> Grant:
    """`whom` is `user:<name>`, `group:<name>` or `everyone`. Writing needs reading."""
    split(scope, pattern)
    grant = Grant(scope, pattern, _principal(tx, caller, whom), read, write and read)
    grants.put_grant(tx, caller.project_id, grant)
    body = {"scope": scope.value, "whom": whom, "read": read, "write": write}
    tx.emit("grant.changed", pattern[:200], project_id=caller.project_id, actor=caller.user.id, body=body)
    return grant


def remove_grant(tx: Tx, caller: Caller, scope: Scope, pattern: str, whom: str) -> None:
    if not grants.remove_grant(tx, caller.project_id, scope, pattern, _principal(tx, caller, whom)):
        raise NotFound(f"{whom} has no grant on {pattern}")
    body = {"scope": scope.value, "whom": whom}
    tx.emit("grant.removed", pattern[:200], project_id=caller.project_id, actor=caller.user.id, body=body)


def list_grants(tx: Tx, caller: Caller) -> list[Grant]:
    return grants.list_grants(tx, caller.project_id)


def list_groups(tx: Tx, caller: Caller) -> dict[str, list[str]]:
    """Returns the project's groups with the names of their members."""
    return grants.list_groups(tx, caller.project_id)


def set_group(tx: Tx, caller: Caller, name: str, members: Sequence[str]) -> list[str]:
    """The group has exactly these members (names) from now on; without any it is gone."""
    found = [get_member(tx, caller.project_id, member).user for member in members]
    grants.set_group(tx, caller.project_id, slug(name, "group"), [user.id for user in found])
    names = sorted(user.name for user in found)
    body = {"members": names}
    tx.emit("group.changed", name, project_id=caller.project_id, actor=caller.user.id, body=body)
    return names


def _principal(tx: Tx, caller: Caller, whom: str) -> str:
    kind, _, name = principal(whom).partition(":")
    if kind == "user":
        return f"user:{get_member(tx, caller.project_id, name).user.id}"
    return f"group:{slug(name, 'group')}" if kind == "group" else whom
