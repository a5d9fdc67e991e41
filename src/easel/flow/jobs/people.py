"""In whose name the controller acts when nobody calls: the job's owner, with the rights they have now."""

from __future__ import annotations

from easel.declare.roles import Role
from easel.errors import Denied, NotFound
from easel.ids import ProjectId, TokenId, UserId
from easel.records.identity import Caller
from easel.store import identity
from easel.store.engine import Tx


class Owners:
    """Looks each owner up once in a transaction."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._known: dict[tuple[str, str], Caller] = {}

    def caller(self, project_id: str, user_id: str) -> Caller:
        key = (project_id, user_id)
        if key not in self._known:
            self._known[key] = _find(self._tx, ProjectId(project_id), UserId(user_id))
        return self._known[key]


def _find(tx: Tx, project_id: ProjectId, user_id: UserId) -> Caller:
    user = identity.find_user(tx, user_id)
    project = identity.find_project(tx, project_id)
    if user is None or project is None:
        raise NotFound("the job's owner or project is gone")
    if user.platform_admin:
        return Caller(user, TokenId(""), project, Role.ADMIN)
    try:
        role = identity.get_member(tx, project_id, user_id).role
    except NotFound as error:
        raise Denied(f"{user.name} is no longer a member of {project.name}") from error
    return Caller(user, TokenId(""), project, role)
