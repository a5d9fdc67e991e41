"""What a log-in at a provider gives: an account, memberships by group, and their end when a group is left."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from easel.declare.roles import Role
from easel.declare.sign_on import GroupRules
from easel.errors import Conflict, Denied
from easel.ids import ProjectId, UserId
from easel.records.identity import User
from easel.store import identity, people, sign_on
from easel.store.engine import Tx


@dataclass(frozen=True, slots=True)
class KnownPerson:
    """Somebody as a provider knows them."""

    subject: str
    name: str
    groups: frozenset[str]
    session: str | None = None
    """How the provider calls the session in which it knows them (`sid`)."""


@dataclass(frozen=True, slots=True)
class GroupRights:
    """What the rules give: whether at all, whether the platform, and the role by name of project."""

    allowed: bool
    platform_admin: bool
    roles: dict[str, Role]


def rights_by(rules: GroupRules, groups: Collection[str]) -> GroupRights:
    """Pure. Where several groups name a project, the higher role counts."""
    admin = bool(rules.admin_group) and rules.admin_group in groups
    allowed = admin or not rules.allowed_group or rules.allowed_group in groups
    roles: dict[str, Role] = {}
    for group, target in rules.groups.items():
        project, _, role = target.partition(":")
        if group in groups and roles.get(project) is not Role.ADMIN:
            roles[project] = Role(role)
    return GroupRights(allowed, admin, roles if allowed else {})


def admit(tx: Tx, rules: GroupRules, person: KnownPerson) -> User:
    """The account of somebody who just proved who they are, with the rights that their groups give today."""
    rights = rights_by(rules, person.groups)
    known = sign_on.find(tx, rules.name, person.subject)
    if not rights.allowed:
        if known is not None:
            _apply(tx, rules, known, GroupRights(False, False, {}))
            identity.revoke_all(tx, known.id)
        raise LeftGroup(
            f"{rules.shown} says that you are not in the group that may use this Easel: ask an admin"
        )
    if known is not None and known.disabled_at is not None:
        raise Denied("your account here is disabled: ask an admin")
    user = known or _create(tx, rules, person)
    sign_on.remember(tx, rules.name, person.subject, user.id, sorted(person.groups))
    _apply(tx, rules, user, rights)
    found = identity.find_user(tx, user.id)
    assert found is not None
    return found


class LeftGroup(Denied):
    """A refusal that takes rights away: what was written is kept although it is an error."""


def _create(tx: Tx, rules: GroupRules, person: KnownPerson) -> User:
    """Names are unique among those of a provider; a second ana becomes ana-2."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", person.name.split("@")[0]).strip("-._")[:50] or "user"
    for number in range(1, 1000):
        try:
            name = plain if number == 1 else f"{plain}-{number}"
            user = identity.add_user(tx, name, home=sign_on.home(rules.name))
        except Conflict:
            continue
        body = {"name": user.name, "provider": rules.name}
        tx.emit("user.created", user.id, actor=user.id, body=body)
        return user
    raise Conflict(f"there are too many people called {plain}: ask an admin")


def _apply(tx: Tx, rules: GroupRules, user: User, rights: GroupRights) -> None:
    """Memberships that this provider gave are as its groups say now; those that people here gave stay."""
    if rules.admin_group and user.platform_admin != rights.platform_admin:
        people.set_platform_admin(tx, user.id, rights.platform_admin)
        kind = "user.made_platform_admin" if rights.platform_admin else "user.left_platform_admins"
        tx.emit(kind, user.id, actor=user.id, body={"provider": rules.name})
    had = sign_on.memberships_by(tx, rules.name, user.id)
    wanted = {
        project.id: rights.roles[project.name] for project in sign_on.projects_named(tx, list(rights.roles))
    }
    for project_id, role in wanted.items():
        if had.get(project_id) is not role and not sign_on.is_local_member(tx, project_id, user.id):
            identity.put_member(tx, project_id, user.id, role, rules.name)
            _tell(tx, "member.admitted", project_id, user.id, rules.name, role)
    for project_id, role in had.items():
        if project_id not in wanted:
            identity.remove_member(tx, project_id, user.id)
            _tell(tx, "member.removed", project_id, user.id, rules.name, role)


def _tell(tx: Tx, kind: str, project_id: ProjectId, user_id: UserId, provider: str, role: Role) -> None:
    body = {"role": role.value, "provider": provider}
    tx.emit(kind, user_id, project_id=project_id, actor=user_id, body=body)
