"""Workspaces."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response
from fastapi.responses import StreamingResponse

from easel.declare.verbs import Verb
from easel.flow.create_project import create_project, list_projects
from easel.flow.people import projects as projects_flow
from easel.flow.people.export import export
from easel.serve.access import Member, PlatformAdmin, ProjectAdmin, SignedIn, State, acts
from easel.serve.creating import Create
from easel.serve.paging import Paging
from easel.serve.router import Router
from easel.serve.state import Tx
from easel.wire.identity import ChangeProject, CreateProject, Project
from easel.wire.model import Page

router = Router(prefix="/api/v1/projects", tags=["projects"])


@router.get("", response_model=Page[Project])
def projects(state: State, caller: SignedIn, page: Paging) -> Page[Project]:
    """The projects that you may enter."""
    with state.store.glance() as tx:
        found = list_projects(tx, caller, page)
    return Page(items=[Project.model_validate(p) for p in found.items], next_cursor=found.next_cursor)


@router.post("", response_model=Project, status_code=201)
def add_project(caller: PlatformAdmin, create: Create, body: CreateProject) -> Response:
    """Open a workspace."""

    def make(tx: Tx) -> Project:
        return Project.model_validate(create_project(tx, caller, body.name, body.description))

    return create(caller, body, make)


@router.get("/{project}", response_model=Project)
def project(caller: Member) -> Project:
    """One workspace."""
    return Project.model_validate(caller.project)


@router.patch("/{project}", response_model=Project)
@acts(Verb.MANAGE, even_archived=True)
def change_project(state: State, caller: ProjectAdmin, body: ChangeProject) -> Project:
    """Describe it, hand it to another owner, archive it (reads only) or open it again."""
    with state.store.write() as tx:
        if body.archived is not None:
            (projects_flow.archive if body.archived else projects_flow.reopen)(tx, caller)
        if body.owner is not None:
            projects_flow.transfer(tx, caller, body.owner)
        if body.description is not None:
            projects_flow.describe(tx, caller, body.description)
        found = projects_flow.current(tx, caller)
    return Project.model_validate(found)


@router.get("/{project}/export", response_class=StreamingResponse)
def export_project(state: State, caller: ProjectAdmin) -> Response:
    """All of it as one tar archive: rows, file sets and bytes. Only its owner may."""
    found = projects_flow.need_owner(caller)
    headers = {"content-disposition": f'attachment; filename="{found.name}.tar"'}
    return StreamingResponse(export(state.lake, caller), media_type="application/x-tar", headers=headers)


@router.delete("/{project}", status_code=204)
@acts(Verb.MANAGE, even_archived=True)
def delete_project(
    state: State,
    caller: ProjectAdmin,
    confirm: Annotated[str, Query(max_length=64, description="The project's name, once more")],
    without_export: Annotated[bool, Query(description="Nobody wants an export")] = False,
) -> None:
    """Remove an archived project with all its rows. Bytes that nobody else names go with the next collection."""
    found = projects_flow.need_owner(caller)
    with state.store.write() as tx:
        projects_flow.delete(tx, caller, confirm, without_export=without_export)
    projects_flow.forget_secrets(state.secrets, found)
