"""Who may read and write what inside a project, and what may go."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import Path, Query

from easel.flow.lake import collect, grant
from easel.flow.members import names_of
from easel.lake.access import Grant, Scope
from easel.serve.access import PlatformAdmin, ProjectAdmin, State
from easel.serve.router import Router
from easel.serve.state import Tx
from easel.wire import lake as wire
from easel.wire.model import Page

router = Router(prefix="/api/v1", tags=["access and cleaning"])


@router.get("/projects/{project}/grants", response_model=Page[wire.Grant])
def grants(state: State, caller: ProjectAdmin) -> Page[wire.Grant]:
    """All grants of the project; what no pattern covers is open to every member."""
    with state.store.read() as tx:
        return Page(items=_shown(tx, grant.list_grants(tx, caller)))


@router.put("/projects/{project}/grants", response_model=wire.Grant)
def put_grant(state: State, caller: ProjectAdmin, body: wire.PutGrant) -> wire.Grant:
    """Let somebody read or write below a path, or file sets by name. Others then may not, unless granted too."""
    with state.store.write() as tx:
        made = grant.put_grant(
            tx, caller, Scope(body.scope), body.pattern, body.principal, read=body.read, write=body.write
        )
        return _shown(tx, [made])[0]


@router.delete("/projects/{project}/grants", status_code=204)
def remove_grant(
    state: State,
    caller: ProjectAdmin,
    scope: Scope,
    pattern: Annotated[str, Query(max_length=1100)],
    principal: Annotated[str, Query(max_length=100)],
) -> None:
    """Take a grant back."""
    with state.store.write() as tx:
        grant.remove_grant(tx, caller, scope, pattern, principal)


@router.get("/projects/{project}/groups", response_model=Page[wire.Group])
def groups(state: State, caller: ProjectAdmin) -> Page[wire.Group]:
    """The project's groups and their members."""
    with state.store.read() as tx:
        found = grant.list_groups(tx, caller)
    return Page(items=[wire.Group(name=name, members=members) for name, members in found.items()])


@router.put("/projects/{project}/groups/{name}", response_model=wire.Group)
def set_group(
    state: State, caller: ProjectAdmin, name: Annotated[str, Path(max_length=64)], body: wire.SetGroup
) -> wire.Group:
    """A group has exactly these members from now on; without any it is gone."""
    with state.store.write() as tx:
        return wire.Group(name=name, members=grant.set_group(tx, caller, name, body.members))


@router.post("/projects/{project}/unused", response_model=wire.Unused)
def drop_unused(state: State, caller: ProjectAdmin, body: wire.CollectUnused) -> wire.Unused:
    """File versions that no job used and no file set holds: told, or with `really` given up."""
    with state.store.write() as tx:
        found = collect.drop_unused(
            tx, caller, body.prefix, timedelta(days=body.older_than_days), really=body.really
        )
    return wire.Unused(files=found.files, bytes=found.bytes, examples=list(found.examples))


@router.post("/gc", response_model=wire.Collected)
def collect_garbage(state: State, caller: PlatformAdmin) -> wire.Collected:
    """Remove what nobody needs: abandoned uploads, unnamed bytes, lost manifest nodes."""
    return wire.Collected.model_validate(collect.collect(state.lake))


def _shown(tx: Tx, found: list[Grant]) -> list[wire.Grant]:
    users = [g.principal.removeprefix("user:") for g in found if g.principal.startswith("user:")]
    names = {f"user:{key}": f"user:{name}" for key, name in names_of(tx, users).items()}
    return [
        wire.Grant(
            scope=g.scope.value,
            pattern=g.pattern,
            principal=names.get(g.principal, g.principal),
            read=g.may_read,
            write=g.may_write,
        )
        for g in found
    ]
