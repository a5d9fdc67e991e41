"""Queries on who comes and goes: disabled users, invitations, what is handed over."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import insert, select, update

from easel.declare.page import PageRequest
from easel.declare.roles import Role
from easel.errors import NotFound
from easel.ids import JobId, ProjectId, UserId
from easel.records.identity import Invitation, Membership, Project, User
from easel.records.job import ACTIVE, JobState
from easel.store.engine import AnyRow, Tx
from easel.store.paging import Collection, Page, fetch
from easel.store.schema.apps import apps
from easel.store.schema.identity import invitations, memberships, projects, users
from easel.store.schema.jobs import jobs
from easel.store.schema.lake import grants, group_members
from easel.store.schema.price import profiles
from easel.store.schema.studies import studies

USERS = Collection(
    {"id": users.c.id, "name": users.c.name, "created_at": users.c.created_at, "service": users.c.service},
    "id",
    "name",
)
INVITATIONS = Collection(
    {"id": invitations.c.id, "created_at": invitations.c.created_at, "role": invitations.c.role},
    "id",
    "-created_at",
)
_USER = (
    users.c.id,
    users.c.name,
    users.c.platform_admin,
    users.c.created_at,
    users.c.disabled_at,
    users.c.service,
)
_INVITATION = tuple(c for c in invitations.c if c.name != "secret_hash")


def list_users(tx: Tx, request: PageRequest) -> Page[User]:
    """Returns everybody on this installation."""
    return fetch(tx, select(*_USER), USERS, request).map(lambda row: User(*row))


def project_names(tx: Tx, user_ids: list[UserId]) -> dict[UserId, list[str]]:
    """Returns the names of the projects that each of these is in."""
    query = (
        select(memberships.c.user_id, projects.c.name)
        .join(projects, projects.c.id == memberships.c.project_id)
        .where(memberships.c.user_id.in_(user_ids))
        .order_by(projects.c.name)
    )
    found: dict[UserId, list[str]] = {user_id: [] for user_id in user_ids}
    for row in tx.execute(query):
        found[row.user_id].append(row.name)
    return found


def list_service_accounts(tx: Tx, project_id: ProjectId) -> list[Membership]:
    """Returns the programs at home in a project, with their roles."""
    query = (
        select(*_USER, memberships.c.role, memberships.c.since)
        .join(memberships, memberships.c.user_id == users.c.id)
        .where(memberships.c.project_id == project_id, users.c.service, users.c.home == project_id)
        .order_by(users.c.name)
    )
    return [Membership(User(*row[:6]), Role(row.role), row.since) for row in tx.execute(query)]


def set_disabled(tx: Tx, user_id: UserId, disabled: bool) -> bool:
    """Whether this call changed it."""
    was = users.c.disabled_at.is_(None) if disabled else users.c.disabled_at.is_not(None)
    changed = update(users).where(users.c.id == user_id, was).values(disabled_at=tx.now if disabled else None)
    return tx.execute(changed).rowcount == 1


def set_platform_admin(tx: Tx, user_id: UserId, is_admin: bool) -> None:
    tx.execute(update(users).where(users.c.id == user_id).values(platform_admin=is_admin))


def platform_admins(tx: Tx) -> list[UserId]:
    """Returns the platform admins who are not disabled."""
    query = select(users.c.id).where(users.c.platform_admin, users.c.disabled_at.is_(None))
    return [row.id for row in tx.execute(query)]


def home_of(tx: Tx, user_id: UserId) -> str:
    return str(tx.execute(select(users.c.home).where(users.c.id == user_id)).scalar_one())


def at_home_in(tx: Tx, project_id: ProjectId) -> list[UserId]:
    return [row.id for row in tx.execute(select(users.c.id).where(users.c.home == project_id))]


def jobs_of(
    tx: Tx, *, user_id: UserId | None = None, project_id: ProjectId | None = None, running: bool
) -> list[tuple[ProjectId, JobId]]:
    """The jobs of a user or a project that wait, with `running` also those that launch or run."""
    states = [JobState.QUEUED.value, *((state.value for state in ACTIVE) if running else ())]
    query = select(jobs.c.project_id, jobs.c.id).where(jobs.c.state.in_(states)).order_by(jobs.c.seq)
    if user_id is not None:
        query = query.where(jobs.c.user_id == user_id)
    if project_id is not None:
        query = query.where(jobs.c.project_id == project_id)
    return [(row.project_id, row.id) for row in tx.execute(query)]


def owned(tx: Tx, project_id: ProjectId, user_id: UserId) -> list[tuple[str, str]]:
    """The kind and the id of what a user owns in a project and somebody else could go on with."""
    found: list[tuple[str, str]] = []
    for kind, table in (("app", apps), ("study", studies), ("profile", profiles)):
        mine = (table.c.project_id == project_id, table.c.user_id == user_id)
        found += [(kind, row.id) for row in tx.execute(select(table.c.id).where(*mine))]
    return found


def hand_over(tx: Tx, project_id: ProjectId, old: UserId, new: UserId) -> None:
    """Apps, studies and profiles of one user are another's from now on, and so are rights on files."""
    for table in (apps, studies, profiles):
        mine = (table.c.project_id == project_id, table.c.user_id == old)
        tx.execute(update(table).where(*mine).values(user_id=new))
    tx.execute(
        update(projects).where(projects.c.id == project_id, projects.c.owner_id == old).values(owner_id=new)
    )
    whose = (grants.c.project_id == project_id, grants.c.principal == f"user:{old}")
    for row in tx.execute(select(grants).where(*whose)).all():
        same = (
            grants.c.project_id == project_id,
            grants.c.scope == row.scope,
            grants.c.pattern == row.pattern,
            grants.c.principal == f"user:{new}",
        )
        has = tx.execute(select(grants.c.may_read, grants.c.may_write).where(*same)).one_or_none()
        rights = {"may_read": row.may_read, "may_write": row.may_write}
        if has is None:
            given = {**row._mapping, "principal": f"user:{new}"}
            tx.execute(insert(grants).values(**given))
        else:
            more = {key: value or getattr(has, key) for key, value in rights.items()}
            tx.execute(update(grants).where(*same).values(**more))
    groups = select(group_members.c.name).where(
        group_members.c.project_id == project_id, group_members.c.user_id == old
    )
    theirs = select(group_members.c.name).where(
        group_members.c.project_id == project_id, group_members.c.user_id == new
    )
    missing = {row.name for row in tx.execute(groups)} - {row.name for row in tx.execute(theirs)}
    for name in sorted(missing):
        tx.execute(insert(group_members).values(project_id=project_id, name=name, user_id=new))
    tx.remembered.clear()


def set_archived(tx: Tx, project_id: ProjectId, archived: bool) -> bool:
    """Whether this call changed it."""
    was = projects.c.archived_at.is_(None) if archived else projects.c.archived_at.is_not(None)
    values = {"archived_at": tx.now if archived else None, "exported_at": None}
    return tx.execute(update(projects).where(projects.c.id == project_id, was).values(**values)).rowcount == 1


def change_project(tx: Tx, project_id: ProjectId, **values: Any) -> Project:
    if values:
        tx.execute(update(projects).where(projects.c.id == project_id).values(**values))
    return Project(*tx.execute(select(*projects.c).where(projects.c.id == project_id)).one())


def add_invitation(
    tx: Tx,
    project_id: ProjectId,
    role: Role,
    note: str,
    secret_hash: str,
    by: UserId,
    expires_at: datetime,
) -> Invitation:
    made = Invitation(tx.mint("inv"), project_id, role, note, by, tx.now, expires_at, None, None)
    tx.execute(
        insert(invitations).values(
            id=made.id,
            project_id=project_id,
            role=role.value,
            note=note,
            secret_hash=secret_hash,
            created_by=by,
            created_at=tx.now,
            expires_at=expires_at,
        )
    )
    return made


def list_invitations(tx: Tx, project_id: ProjectId, request: PageRequest) -> Page[Invitation]:
    query = select(*_INVITATION).where(invitations.c.project_id == project_id)
    return fetch(tx, query, INVITATIONS, request).map(_invitation)


def get_invitation(tx: Tx, project_id: ProjectId, invitation_id: str) -> Invitation:
    mine = (invitations.c.id == invitation_id, invitations.c.project_id == project_id)
    row = tx.execute(select(*_INVITATION).where(*mine)).one_or_none()
    if row is None:
        raise NotFound(f"no invitation {invitation_id[:80]!r}: `easel invitations ls` lists them")
    return _invitation(row)


def open_invitation(tx: Tx, secret_hash: str) -> Invitation | None:
    """The invitation that this secret opens, while it does; the row is locked until the transaction ends."""
    query = select(*_INVITATION).where(
        invitations.c.secret_hash == secret_hash,
        invitations.c.ended_at.is_(None),
        invitations.c.expires_at > tx.now,
    )
    row = tx.execute(query.with_for_update()).one_or_none()
    return None if row is None else _invitation(row)


def end_invitation(tx: Tx, invitation_id: str, user_id: UserId | None) -> bool:
    """Whether this call ended it."""
    still = (invitations.c.id == invitation_id, invitations.c.ended_at.is_(None))
    return (
        tx.execute(update(invitations).where(*still).values(ended_at=tx.now, user_id=user_id)).rowcount == 1
    )


def _invitation(row: AnyRow) -> Invitation:
    values = dict(row._mapping)
    return Invitation(**{**values, "role": Role(values["role"])})
