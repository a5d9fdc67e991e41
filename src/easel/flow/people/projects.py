"""Projects that change hands and end: transfer, archive, delete."""

from __future__ import annotations

from easel.declare.roles import Role
from easel.errors import Conflict, Denied, InvalidInput
from easel.flow.apps.declare import delete_app
from easel.flow.people.disable import end_jobs
from easel.flow.studies.declare import delete_study
from easel.records.identity import Caller, Project
from easel.run.secret_store import SecretStore
from easel.store import identity, people, project_rows
from easel.store.engine import Tx


def current(tx: Tx, caller: Caller) -> Project | None:
    """Returns the caller's project as it is now, changed or not by this transaction."""
    return identity.find_project(tx, caller.project_id)


def need_owner(caller: Caller) -> Project:
    """The caller's project, if they answer for it: its owner, a platform admin, or where it has no owner any admin."""
    project = caller.project
    assert project is not None
    if project.owner_id in (None, caller.user.id) or caller.user.platform_admin:
        return project
    raise Denied("only the owner of this project may do this: ask them, or a platform admin")


def transfer(tx: Tx, caller: Caller, to: str) -> Project:
    """Another member answers for the project from now on, and is one of its admins."""
    project = need_owner(caller)
    heir = identity.get_member(tx, project.id, to)
    if heir.user.disabled_at is not None or heir.user.service:
        raise Conflict(f"{heir.user.name} cannot own a project: name a person who works here")
    if heir.role is not Role.ADMIN:
        identity.put_member(tx, project.id, heir.user.id, Role.ADMIN)
    changed = people.change_project(tx, project.id, owner_id=heir.user.id)
    body = {"to": heir.user.name}
    tx.emit("project.transferred", project.id, project_id=project.id, actor=caller.user.id, body=body)
    return changed


def describe(tx: Tx, caller: Caller, description: str) -> Project:
    changed = people.change_project(tx, caller.project_id, description=description)
    tx.emit("project.described", changed.id, project_id=changed.id, actor=caller.user.id)
    return changed


def archive(tx: Tx, caller: Caller) -> Project:
    """Closes the project to new work: it can only be read. Waiting jobs end, running ones may finish."""
    project = need_owner(caller)
    if people.set_archived(tx, project.id, True):
        why = f"the project {project.name} was archived"
        ended = end_jobs(tx, caller, None, project_id=project.id, kill_running=False, why=why)
        body = {"name": project.name, "jobs": ended}
        tx.emit("project.archived", project.id, project_id=project.id, actor=caller.user.id, body=body)
    return people.change_project(tx, project.id)


def reopen(tx: Tx, caller: Caller) -> Project:
    """Undo an archiving."""
    project = need_owner(caller)
    if people.set_archived(tx, project.id, False):
        body = {"name": project.name}
        tx.emit("project.reopened", project.id, project_id=project.id, actor=caller.user.id, body=body)
    return people.change_project(tx, project.id)


def delete(tx: Tx, caller: Caller, confirm: str, *, without_export: bool) -> int:
    """Remove a project with all its rows; returns how many. Bytes that nobody else names go with `easel gc`."""
    project = need_owner(caller)
    if confirm != project.name:
        raise InvalidInput(f"confirm with the project's name: {project.name}")
    if project.archived_at is None:
        raise Conflict(
            f"{project.name} is in use: archive it first (`easel projects archive {project.name}`)"
        )
    if people.jobs_of(tx, project_id=project.id, running=True):
        raise Conflict("jobs of this project still run: wait for them, or kill them")
    if project.exported_at is None and not without_export:
        raise Conflict(
            f"nobody exported {project.name} since it was archived: `easel projects export {project.name}` first, "
            "or say that no export is wanted"
        )
    for name in project_rows.app_names(tx, project.id):
        delete_app(tx, caller, name)
    for name in project_rows.study_names(tx, project.id):
        delete_study(tx, caller, name)
    residents = people.at_home_in(tx, project.id)
    rows = project_rows.remove(tx, project.id)
    for user_id in residents:
        if not identity.projects_of(tx, user_id):
            identity.revoke_all(tx, user_id)
            people.set_disabled(tx, user_id, True)
    body = {"name": project.name, "rows": rows}
    tx.emit("project.deleted", project.id, actor=caller.user.id, body=body)
    return rows


def forget_secrets(secrets: SecretStore, project: Project) -> None:
    """Forgets the project's secrets after its rows are gone, so that nothing is lost when they are not."""
    for name in secrets.names(project.id):
        secrets.remove(project.id, name)
