"""Queries on projects, users, memberships, tokens and sessions."""

from __future__ import annotations

from collections.abc import Collection as Group
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import Select, and_, bindparam, delete, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from easel.declare.page import PageRequest
from easel.declare.roles import Role
from easel.declare.verbs import Verb
from easel.errors import Conflict, NotFound
from easel.ids import ProjectId, TokenId, UserId
from easel.records.identity import Membership, Project, Token, TokenScope, User
from easel.store.engine import AnyRow, Tx
from easel.store.paging import Collection, Page, fetch
from easel.store.schema.identity import memberships, projects, sessions, tokens, users
from easel.store.schema.metadata import Moment
from easel.store.upsert import chunks

PLATFORM = "platform"
"""The home of platform admins, where a project's id stands for everybody else."""

PROJECTS = Collection(
    {"id": projects.c.id, "name": projects.c.name, "created_at": projects.c.created_at}, "id", "name"
)
MEMBERS = Collection(
    {"id": users.c.id, "name": users.c.name, "role": memberships.c.role, "since": memberships.c.since},
    "id",
    "name",
)
TOKENS = Collection(
    {"id": tokens.c.id, "name": tokens.c.name, "created_at": tokens.c.created_at}, "id", "-created_at"
)

_PROJECT = tuple(projects.c)
_USER = (
    users.c.id,
    users.c.name,
    users.c.platform_admin,
    users.c.created_at,
    users.c.disabled_at,
    users.c.service,
)
_TOKEN = tuple(c for c in tokens.c if c.name != "secret_hash")


def add_project(tx: Tx, name: str, description: str, owner_id: UserId | None = None) -> Project:
    project = Project(ProjectId(tx.mint("prj")), name, description, tx.now, None, owner_id)
    try:
        with tx.nested():
            tx.execute(
                insert(projects).values(
                    id=project.id, name=name, description=description, created_at=tx.now, owner_id=owner_id
                )
            )
    except IntegrityError as error:
        raise Conflict(f"a project named {name!r} exists already: choose another name") from error
    return project


def find_project(tx: Tx, project_id: ProjectId) -> Project | None:
    row = tx.execute(select(*_PROJECT).where(projects.c.id == project_id)).one_or_none()
    return Project(*row) if row else None


def project_named(tx: Tx, name: str) -> Project | None:
    row = tx.execute(select(projects).where(projects.c.name == name)).one_or_none()
    return None if row is None else _project(row)


def list_projects(
    tx: Tx, user: User, request: PageRequest, only: Sequence[ProjectId] | None = None
) -> Page[Project]:
    """Returns the projects that the user may enter, of `only` these: all of them for a platform admin."""
    query = select(*_PROJECT)
    if only is not None:
        query = query.where(projects.c.id.in_(only))
    if not user.platform_admin:
        query = query.join(memberships, memberships.c.project_id == projects.c.id).where(
            memberships.c.user_id == user.id
        )
    return fetch(tx, query, PROJECTS, request).map(_project)


def add_user(
    tx: Tx, name: str, *, home: str | None, platform_admin: bool = False, service: bool = False
) -> User:
    user = User(UserId(tx.mint("usr")), name, platform_admin, tx.now, None, service)
    try:
        with tx.nested():
            tx.execute(
                insert(users).values(
                    id=user.id,
                    name=name,
                    home=home or PLATFORM,
                    platform_admin=platform_admin,
                    created_at=tx.now,
                    service=service,
                )
            )
    except IntegrityError as error:
        raise Conflict(f"a user named {name!r} exists here already: choose another name") from error
    return user


def find_user(tx: Tx, user_id: UserId) -> User | None:
    row = tx.execute(select(*_USER).where(users.c.id == user_id)).one_or_none()
    return User(*row) if row else None


_IN_PROJECT = (*_USER, memberships.c.role, *(column.label(f"project_{column.name}") for column in _PROJECT))
_ACTING = (
    select(*_IN_PROJECT)
    .select_from(
        users.join(projects, projects.c.id == bindparam("of_project")).outerjoin(
            memberships, and_(memberships.c.project_id == projects.c.id, memberships.c.user_id == users.c.id)
        )
    )
    .where(
        users.c.id == bindparam("of_user"), users.c.disabled_at.is_(None), projects.c.archived_at.is_(None)
    )
)


_MEMBERS_ACTING = (
    select(*_IN_PROJECT)
    .select_from(
        memberships.join(users, users.c.id == memberships.c.user_id).join(
            projects, projects.c.id == memberships.c.project_id
        )
    )
    .where(users.c.disabled_at.is_(None), projects.c.archived_at.is_(None))
)


def acting(tx: Tx, project_id: ProjectId, user_id: UserId) -> tuple[User, Project, Role] | None:
    """Returns a user, a project and their role in it; None unless both are open and the user may act there."""
    row = tx.execute(_ACTING, {"of_project": project_id, "of_user": user_id}).one_or_none()
    return None if row is None else _acting(row)


def all_acting(tx: Tx) -> dict[tuple[ProjectId, UserId], tuple[User, Project, Role]]:
    """Returns the same for every member of every project."""
    found = {(ProjectId(row.project_id), UserId(row.id)): _acting(row) for row in tx.execute(_MEMBERS_ACTING)}
    return {key: acting for key, acting in found.items() if acting is not None}


def _acting(row: AnyRow) -> tuple[User, Project, Role] | None:
    user, project = User(*row[: len(_USER)]), Project(*row[len(_USER) + 1 :])
    if user.platform_admin:
        return user, project, Role.ADMIN
    return None if row.role is None else (user, project, Role(row.role))


_NAMES = select(users.c.id, users.c.name).where(users.c.id.in_(bindparam("ids", expanding=True)))


def names_of(tx: Tx, user_ids: Sequence[str]) -> dict[str, str]:
    """The names of users, also of those who left."""
    wanted = sorted(set(user_ids))
    found = {row.id: row.name for row in tx.execute(_NAMES, {"ids": wanted})} if wanted else {}
    return {user_id: found.get(user_id, user_id) for user_id in wanted}


def any_user(tx: Tx) -> bool:
    return tx.execute(select(users.c.id).limit(1)).first() is not None


def put_member(tx: Tx, project_id: ProjectId, user_id: UserId, role: Role, source: str | None = None) -> None:
    """Add a membership, or change its role and who says so."""
    found = tx.execute(
        update(memberships)
        .where(memberships.c.project_id == project_id, memberships.c.user_id == user_id)
        .values(role=role.value, source=source)
    )
    if found.rowcount == 0:
        new = {"project_id": project_id, "user_id": user_id, "role": role.value, "since": tx.now}
        tx.execute(insert(memberships).values(**new, source=source))


def remove_member(tx: Tx, project_id: ProjectId, user_id: UserId) -> None:
    tx.execute(
        delete(memberships).where(memberships.c.project_id == project_id, memberships.c.user_id == user_id)
    )


def get_member(tx: Tx, project_id: ProjectId, name_or_id: str) -> Membership:
    """A member by id or by name; among equal names from other homes, the project's own user."""
    rows = tx.execute(
        select(*_USER, memberships.c.role, memberships.c.since, memberships.c.source, users.c.home)
        .join(memberships, memberships.c.user_id == users.c.id)
        .where(memberships.c.project_id == project_id)
        .where(or_(users.c.id == name_or_id, users.c.name == name_or_id))
    ).all()
    if not rows:
        raise NotFound(f"no user {name_or_id[:80]!r} in this project: `easel users ls` lists them")
    return _membership(min(rows, key=lambda row: row.home != project_id))


def list_members(tx: Tx, project_id: ProjectId, request: PageRequest) -> Page[Membership]:
    query = (
        select(*_USER, memberships.c.role, memberships.c.since, memberships.c.source)
        .join(memberships, memberships.c.user_id == users.c.id)
        .where(memberships.c.project_id == project_id)
    )
    return fetch(tx, query, MEMBERS, request).map(_membership)


def projects_of(tx: Tx, user_id: UserId) -> list[ProjectId]:
    found = tx.execute(select(memberships.c.project_id).where(memberships.c.user_id == user_id))
    return [row.project_id for row in found]


def without_rights(tx: Tx, owners: Group[tuple[ProjectId, UserId]]) -> set[tuple[ProjectId, UserId]]:
    """Returns who may run nothing in that project: gone, disabled, no longer members, or it is archived."""
    if not owners:
        return set()
    people = sorted({user for _, user in owners})
    places = sorted({project for project, _ in owners})
    able: dict[str, bool] = {}
    member: set[tuple[str, str]] = set()
    for some in chunks(people):
        query = select(users.c.id, users.c.platform_admin).where(
            users.c.id.in_(some), users.c.disabled_at.is_(None)
        )
        able |= {row.id: row.platform_admin for row in tx.execute(query)}
        pairs = select(memberships.c.project_id, memberships.c.user_id).where(memberships.c.user_id.in_(some))
        member |= {(row.project_id, row.user_id) for row in tx.execute(pairs)}
    standing: set[str] = set()
    for part in chunks(places):
        open_ones = select(projects.c.id).where(projects.c.id.in_(part), projects.c.archived_at.is_(None))
        standing |= {row.id for row in tx.execute(open_ones)}
    return {
        (project, user)
        for project, user in owners
        if project not in standing or user not in able or not (able[user] or (project, user) in member)
    }


def admins_of(tx: Tx, project_id: ProjectId) -> list[UserId]:
    found = tx.execute(
        select(memberships.c.user_id).where(
            memberships.c.project_id == project_id, memberships.c.role == Role.ADMIN.value
        )
    )
    return [row.user_id for row in found]


def add_token(
    tx: Tx,
    user_id: UserId,
    name: str,
    secret_hash: str,
    expires_at: datetime | None,
    scope: TokenScope | None = None,
) -> Token:
    token = Token(TokenId(tx.mint("tok")), user_id, name, tx.now, expires_at, None, None, scope)
    tx.execute(
        insert(tokens).values(
            id=token.id,
            user_id=user_id,
            name=name,
            secret_hash=secret_hash,
            created_at=tx.now,
            expires_at=expires_at,
            scope=_scope_row(scope),
        )
    )
    return token


def find_token(tx: Tx, token_id: str) -> Token | None:
    row = tx.execute(select(*_TOKEN).where(tokens.c.id == token_id)).one_or_none()
    return _token(row) if row else None


def list_tokens(tx: Tx, user_id: UserId, request: PageRequest) -> Page[Token]:
    return fetch(tx, select(*_TOKEN).where(tokens.c.user_id == user_id), TOKENS, request).map(_token)


def revoke_token(tx: Tx, token_id: TokenId) -> bool:
    """Whether this call revoked it; a second one changes nothing."""
    changed = tx.execute(
        update(tokens).where(tokens.c.id == token_id, tokens.c.revoked_at.is_(None)).values(revoked_at=tx.now)
    )
    return changed.rowcount == 1


def end_token(tx: Tx, token_id: TokenId, at: datetime) -> None:
    """The token stops working then, or when it would have anyway."""
    sooner = or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > at)
    tx.execute(update(tokens).where(tokens.c.id == token_id, sooner).values(expires_at=at))


def revoke_all(tx: Tx, user_id: UserId) -> int:
    """Revoke every token of a user, and with them all sessions; returns how many."""
    theirs = select(tokens.c.id).where(tokens.c.user_id == user_id)
    tx.execute(delete(sessions).where(sessions.c.token_id.in_(theirs)))
    mine = (tokens.c.user_id == user_id, tokens.c.revoked_at.is_(None))
    return tx.execute(update(tokens).where(*mine).values(revoked_at=tx.now)).rowcount


@dataclass(frozen=True, slots=True)
class LapsedToken:
    name: str
    user: str
    expired: datetime


def lapsed_tokens(tx: Tx, since: datetime) -> list[LapsedToken]:
    """Returns tokens that expired since a moment and were in use on the day before; those of browsers are left out."""
    query = (
        select(tokens.c.name, users.c.name, tokens.c.expires_at, tokens.c.last_used_at)
        .join(users, users.c.id == tokens.c.user_id)
        .where(tokens.c.expires_at > since, tokens.c.expires_at <= tx.now)
        .where(tokens.c.revoked_at.is_(None), users.c.disabled_at.is_(None))
        .where(tokens.c.name.not_like("sign-on: %"), tokens.c.last_used_at.is_not(None))
        .order_by(tokens.c.expires_at.desc())
    )
    day = timedelta(days=1)
    return [
        LapsedToken(name, user, expired)
        for name, user, expired, used in tx.execute(query)
        if expired - used < day
    ]


def touch_token(tx: Tx, token_id: TokenId) -> None:
    tx.execute(update(tokens).where(tokens.c.id == token_id).values(last_used_at=tx.now))


@dataclass(frozen=True, slots=True)
class Credential:
    """What a valid secret proves, and the project that was asked for, if it exists."""

    user: User
    token_id: TokenId
    token_touched: datetime | None
    project: Project | None
    role: Role | None
    scope: TokenScope | None = None
    until: datetime | None = None


@cache
def _secret_query(session: bool, in_project: bool) -> Select[*tuple[Any, ...]]:
    """Built once: building it costs eight times as much as running it, and every request does."""
    query = select(
        *_USER,
        tokens.c.id.label("token_id"),
        tokens.c.last_used_at,
        tokens.c.scope,
        tokens.c.expires_at.label("until"),
    ).join(tokens, tokens.c.user_id == users.c.id)
    now = bindparam("now", type_=Moment)
    if session:
        query = query.join(sessions, sessions.c.token_id == tokens.c.id).where(
            sessions.c.secret_hash == bindparam("secret_hash"), sessions.c.expires_at > now
        )
    else:
        query = query.where(tokens.c.secret_hash == bindparam("secret_hash"))
    query = query.where(
        tokens.c.revoked_at.is_(None),
        or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > now),
        users.c.disabled_at.is_(None),
    )
    if not in_project:
        return query
    return (
        query.add_columns(*(c.label(f"p_{c.name}") for c in projects.c), memberships.c.role)
        .outerjoin(projects, projects.c.name == bindparam("project"))
        .outerjoin(
            memberships,
            and_(memberships.c.project_id == projects.c.id, memberships.c.user_id == users.c.id),
        )
    )


def check_secret(tx: Tx, secret_hash: str, project: str | None, *, session: bool) -> Credential | None:
    """One query: token or session, its user, and the user's role in the named project."""
    given = {"secret_hash": secret_hash, "now": tx.now}
    given |= {} if project is None else {"project": project}
    query = _secret_query(session, project is not None)
    row = tx.execute(query, given).one_or_none()
    if row is None:
        return None
    found = None
    if project is not None and row.p_id is not None:
        found = Project(*(row._mapping[f"p_{c.name}"] for c in projects.c))
    role = Role(row.role) if project is not None and row.role else None
    return Credential(
        User(*row[:6]), row.token_id, row.last_used_at, found, role, _scope(row.scope), row.until
    )


def add_session(
    tx: Tx, secret_hash: str, token_id: TokenId, expires_at: datetime, sid: str | None = None
) -> None:
    """Opens a session; `sid` is how the provider that vouched for the person calls it."""
    tx.execute(delete(sessions).where(sessions.c.expires_at <= tx.now))
    tx.execute(
        insert(sessions).values(
            secret_hash=secret_hash,
            token_id=token_id,
            created_at=tx.now,
            expires_at=expires_at,
            sid=None if sid is None else sid[:255],
        )
    )


def remove_session(tx: Tx, secret_hash: str) -> None:
    tx.execute(delete(sessions).where(sessions.c.secret_hash == secret_hash))


def _project(row: AnyRow) -> Project:
    return Project(*row)


def _token(row: AnyRow) -> Token:
    return Token(
        row.id,
        row.user_id,
        row.name,
        row.created_at,
        row.expires_at,
        row.revoked_at,
        row.last_used_at,
        _scope(row.scope),
    )


def _scope_row(scope: TokenScope | None) -> dict[str, Any] | None:
    if scope is None:
        return None
    places = None if scope.projects is None else list(scope.projects)
    return {"projects": places, "verbs": sorted(scope.verbs)}


def _scope(row: Any) -> TokenScope | None:
    if row is None:
        return None
    places = None if row["projects"] is None else tuple(ProjectId(each) for each in row["projects"])
    return TokenScope(frozenset(Verb(each) for each in row["verbs"]), places)


def _membership(row: AnyRow) -> Membership:
    return Membership(User(*row[:6]), Role(row.role), row.since, row.source)
