"""Your own tokens."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Response

from easel.flow.issue_token import IssuedToken, issue_token, list_tokens, revoke_token
from easel.flow.people.service_accounts import scope_of
from easel.records.identity import Token
from easel.serve.access import SignedIn, State
from easel.serve.creating import Create
from easel.serve.paging import Paging
from easel.serve.router import Router
from easel.serve.state import Tx
from easel.wire import identity as wire
from easel.wire.model import Page

router = Router(prefix="/api/v1/tokens", tags=["tokens"])


@router.get("", response_model=Page[wire.Token])
def tokens(state: State, caller: SignedIn, page: Paging) -> Page[wire.Token]:
    """Your tokens, without their secrets."""
    with state.store.read() as tx:
        found = list_tokens(tx, caller, page)
    return Page(items=[shown(t) for t in found.items], next_cursor=found.next_cursor)


@router.post("", response_model=wire.IssuedToken, status_code=201)
def add_token(caller: SignedIn, create: Create, body: wire.CreateToken) -> Response:
    """A further token for yourself; its secret is in this answer and nowhere else."""

    def make(tx: Tx) -> wire.IssuedToken:
        scope = scope_of(tx, caller.user, body.verbs, body.projects)
        return issued(issue_token(tx, caller, caller.user.id, body.name, body.expires_at, scope))

    return create(caller, body, make, once=without_secret)


@router.delete("/{token_id}", status_code=204)
def remove_token(state: State, caller: SignedIn, token_id: Annotated[str, Path(max_length=64)]) -> None:
    """Revoke a token: it stops working at once, and so do sessions opened with it."""
    with state.store.write() as tx:
        revoke_token(tx, caller, token_id)


def issued(made: IssuedToken) -> wire.IssuedToken:
    return wire.IssuedToken(**shown(made.token).model_dump(), secret=made.secret)


def shown(token: Token) -> wire.Token:
    said = None
    if token.scope is not None:
        places = None if token.scope.projects is None else [str(each) for each in token.scope.projects]
        said = wire.TokenScope(verbs=sorted(token.scope.verbs), projects=places)
    plain = {name: getattr(token, name) for name in wire.Token.model_fields if name != "scope"}
    return wire.Token(**plain, scope=said)


def without_secret(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "secret": None}
