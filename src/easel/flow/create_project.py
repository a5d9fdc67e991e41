"""A platform admin opens a workspace, and closes it to new work."""

from __future__ import annotations

from easel.declare.names import slug
from easel.records.identity import Caller, Project
from easel.store import identity
from easel.store.engine import Tx


def create_project(tx: Tx, caller: Caller, name: str, description: str) -> Project:
    project = identity.add_project(tx, slug(name, "project"), description)
    body = {"name": project.name}
    tx.emit("project.created", project.id, project_id=project.id, actor=caller.user.id, body=body)
    return project
