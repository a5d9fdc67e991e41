"""Disable a user: sessions, tokens and waiting jobs end at once, work is kept and may be handed over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from easel.declare.roles import Role
from easel.errors import Conflict, Denied, NotFound
from easel.flow.jobs.control import kill_job
from easel.ids import ProjectId, UserId
from easel.records.identity import Caller, User
from easel.store import identity, people
from easel.store.engine import Tx


@dataclass(frozen=True, slots=True)
class Departure:
    """What came of disabling somebody."""

    user: User
    tokens: int
    jobs: int
    handed_over: int


def find_for_admin(tx: Tx, caller: Caller, name_or_id: str) -> User:
    """Returns the user that this caller may disable and enable.

    An account opens everything its user may enter, so a project's admin decides only over people of no other project.
    """
    if caller.project is None:
        found = identity.find_user(tx, UserId(name_or_id))
        if found is None:
            raise NotFound(
                f"no user {name_or_id[:80]!r}: `easel users ls --all` lists everybody with their ids"
            )
        return found
    user = identity.get_member(tx, caller.project_id, name_or_id).user
    if caller.user.platform_admin:
        return user
    if user.platform_admin or identity.projects_of(tx, user.id) != [caller.project_id]:
        raise Denied(
            f"{user.name} may enter more than this project: ask a platform admin, or `easel users rm`"
        )
    return user


def disable(
    tx: Tx, caller: Caller, name_or_id: str, *, hand_over_to: str | None, kill_running: bool
) -> Departure:
    """Lets nobody act as this user from now on. Running jobs end by themselves unless `kill_running`."""
    user = find_for_admin(tx, caller, name_or_id)
    if user.id == caller.user.id:
        raise Conflict("you cannot disable yourself: ask another admin")
    if user.platform_admin and people.platform_admins(tx) == [user.id]:
        raise Conflict(f"{user.name} is the only platform admin: make somebody else one first")
    homes = identity.projects_of(tx, user.id)
    handed = _hand_over_all(tx, caller, user, homes, hand_over_to) if hand_over_to else 0
    changed = people.set_disabled(tx, user.id, True)
    tokens = identity.revoke_all(tx, user.id)
    ended = end_jobs(tx, caller, user.id, kill_running=kill_running, why=f"{user.name} was disabled")
    if changed:
        body: dict[str, object] = {"name": user.name, "tokens": tokens, "jobs": ended, "handed_over": handed}
        _tell(tx, caller, "user.disabled", user, homes, body)
    return Departure(replace(user, disabled_at=user.disabled_at or tx.now), tokens, ended, handed)


def enable(tx: Tx, caller: Caller, name_or_id: str) -> User:
    """The user may log in again, with new tokens: the old ones stay revoked."""
    user = find_for_admin(tx, caller, name_or_id)
    if people.set_disabled(tx, user.id, False):
        _tell(tx, caller, "user.enabled", user, identity.projects_of(tx, user.id), {"name": user.name})
    return replace(user, disabled_at=None)


def end_jobs(
    tx: Tx,
    caller: Caller,
    user_id: UserId | None,
    *,
    kill_running: bool,
    why: str,
    project_id: ProjectId | None = None,
) -> int:
    """End the waiting jobs of a user or a project, with `kill_running` also those on devices; returns how many."""
    found = people.jobs_of(tx, user_id=user_id, project_id=project_id, running=kill_running)
    for where, job_id in found:
        project = identity.find_project(tx, where)
        if project is not None:
            kill_job(tx, replace(caller, project=project, role=Role.ADMIN), job_id, why)
    return len(found)


def hand_over(tx: Tx, caller: Caller, user: User, to: str, project_id: ProjectId) -> int:
    """What `user` owns in a project is the other member's from now on; returns how many things."""
    heir = identity.get_member(tx, project_id, to).user
    if heir.id == user.id:
        raise Conflict("somebody else must take it over")
    if heir.disabled_at is not None:
        raise Conflict(f"{heir.name} is disabled: name somebody who works here")
    things = people.owned(tx, project_id, user.id)
    people.hand_over(tx, project_id, user.id, heir.id)
    for kind, thing in things:
        told = {"from": user.id, "to": heir.id}
        tx.emit(f"{kind}.changed", thing, project_id=project_id, actor=caller.user.id, body=told)
    body = {"from": user.name, "to": heir.name, "things": len(things)}
    tx.emit("work.handed_over", user.id, project_id=project_id, actor=caller.user.id, body=body)
    return len(things)


def _tell(
    tx: Tx, caller: Caller, kind: str, user: User, places: Sequence[ProjectId], body: dict[str, object]
) -> None:
    for project_id in places:
        tx.emit(kind, user.id, project_id=project_id, actor=caller.user.id, body=body)
    if not places:
        tx.emit(kind, user.id, actor=caller.user.id, body=body)


def _hand_over_all(tx: Tx, caller: Caller, user: User, homes: list[ProjectId], to: str) -> int:
    """Hands over in every project where both are; the heir must be in each where there is something to take."""
    total = 0
    for project_id in homes:
        if people.owned(tx, project_id, user.id) or project_id == homes[0]:
            total += hand_over(tx, caller, user, to, project_id)
    return total
