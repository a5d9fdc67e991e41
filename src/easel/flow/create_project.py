"""Projects: create one, list those that a person may enter."""

from __future__ import annotations

from easel.declare.names import slug
from easel.declare.page import PageRequest
from easel.records.identity import Caller, Project
from easel.store import identity
from easel.store.engine import Tx
from easel.store.paging import Page


def list_projects(tx: Tx, caller: Caller, page: PageRequest) -> Page[Project]:
    """Returns the projects that the caller may enter."""
    return identity.list_projects(tx, caller.user, page, caller.scope.projects if caller.scope else None)


def create_project(tx: Tx, caller: Caller, name: str, description: str) -> Project:
    project = identity.add_project(tx, slug(name, "project"), description)
    body = {"name": project.name}
    tx.emit("project.created", project.id, project_id=project.id, actor=caller.user.id, body=body)
    return project
