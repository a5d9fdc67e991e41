"""Programs with tokens of their own."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import Path, Response

from easel.flow.people import service_accounts
from easel.flow.people.service_accounts import ServiceAccount
from easel.serve.access import ProjectAdmin, State
from easel.serve.creating import Create
from easel.serve.router import Router
from easel.serve.routes import tokens
from easel.serve.routes.tokens import issued, without_secret
from easel.serve.routes.users import shown
from easel.serve.state import Tx
from easel.wire import identity as wire
from easel.wire.model import Page

router = Router(prefix="/api/v1/projects/{project}/service-accounts", tags=["service accounts"])
Account = Annotated[str, Path(description="A service account's name or id", max_length=64)]
TokenId = Annotated[str, Path(max_length=64)]


@router.get("", response_model=Page[wire.ServiceAccount])
def service_account_list(state: State, caller: ProjectAdmin) -> Page[wire.ServiceAccount]:
    """The project's service accounts with their tokens: scope, expiry and last use."""
    with state.store.read() as tx:
        return Page(items=[_account(each) for each in service_accounts.list_accounts(tx, caller)])


@router.post("", response_model=wire.ServiceAccount, status_code=201)
def add_service_account(caller: ProjectAdmin, create: Create, body: wire.CreateServiceAccount) -> Response:
    """A program that works in this project; issue tokens for it next."""

    def make(tx: Tx) -> wire.ServiceAccount:
        return _account(ServiceAccount(service_accounts.create(tx, caller, body.name, body.role), ()))

    return create(caller, body, make)


@router.post("/{account}/tokens", response_model=wire.IssuedToken, status_code=201)
def add_service_token(
    caller: ProjectAdmin, create: Create, account: Account, body: wire.CreateServiceToken
) -> Response:
    """A token with a scope and an end; its secret is in this answer and nowhere else."""

    def make(tx: Tx) -> wire.IssuedToken:
        made = service_accounts.issue(tx, caller, account, body.name, body.verbs, body.projects, body.days)
        return issued(made)

    return create(caller, body, make, once=without_secret)


@router.post("/{account}/tokens/{token_id}/rotate", response_model=wire.IssuedToken, status_code=201)
def rotate_service_token(
    caller: ProjectAdmin, create: Create, account: Account, token_id: TokenId, body: wire.RotateToken
) -> Response:
    """A new token like an old one, which works on for some hours."""

    def make(tx: Tx) -> wire.IssuedToken:
        overlap = timedelta(hours=body.overlap_hours)
        return issued(service_accounts.rotate(tx, caller, account, token_id, overlap))

    return create(caller, body, make, once=without_secret)


@router.delete("/{account}/tokens/{token_id}", status_code=204)
def remove_service_token(state: State, caller: ProjectAdmin, account: Account, token_id: TokenId) -> None:
    """Revoke a token: it stops working at once."""
    with state.store.write() as tx:
        service_accounts.revoke(tx, caller, account, token_id)


def _account(found: ServiceAccount) -> wire.ServiceAccount:
    return wire.ServiceAccount(
        **shown(found.member).model_dump(), tokens=tuple(tokens.shown(token) for token in found.tokens)
    )
