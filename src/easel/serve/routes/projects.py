"""Workspaces."""

from __future__ import annotations

from fastapi import APIRouter, Response

from easel.flow.create_project import create_project
from easel.serve.access import Member, PlatformAdmin, SignedIn, State
from easel.serve.creating import Create
from easel.serve.paging import Paging
from easel.store.engine import Tx
from easel.store.identity import list_projects
from easel.wire.identity import CreateProject, Project
from easel.wire.model import Page

router = APIRouter(prefix="/api/v1/projects", tags=["projects"])


@router.get("", response_model=Page[Project])
def projects(state: State, caller: SignedIn, page: Paging) -> Page[Project]:
    """The projects that you may enter."""
    with state.store.read() as tx:
        found = list_projects(tx, caller.user, page)
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
