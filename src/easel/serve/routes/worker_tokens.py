"""Credentials of workers."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Response

from easel.flow.workers.tokens import issue, list_tokens, revoke
from easel.serve.access import PlatformAdmin, State
from easel.serve.creating import Create
from easel.serve.router import Router
from easel.serve.routes.tokens import without_secret
from easel.serve.state import Tx
from easel.wire import worker as wire

router = Router(prefix="/api/v1/worker-tokens", tags=["workers"])


@router.get("", response_model=wire.WorkerTokenList)
def worker_tokens(state: State, caller: PlatformAdmin) -> wire.WorkerTokenList:
    """All of them, without their secrets."""
    with state.store.read() as tx:
        return wire.WorkerTokenList(items=[wire.WorkerToken.model_validate(t) for t in list_tokens(tx)])


@router.post("", response_model=wire.IssuedWorkerToken, status_code=201)
def add_worker_token(caller: PlatformAdmin, create: Create, body: wire.CreateWorkerToken) -> Response:
    """A token with which machines join the pool; its secret is in this answer and nowhere else."""

    def make(tx: Tx) -> wire.IssuedWorkerToken:
        made = issue(tx, caller.user.id, body.name, body.expires_at)
        plain = wire.WorkerToken.model_validate(made.token).model_dump()
        return wire.IssuedWorkerToken(**plain, secret=made.secret)

    return create(caller, body, make, once=without_secret)


@router.delete("/{token_id}", status_code=204)
def remove_worker_token(
    state: State, caller: PlatformAdmin, token_id: Annotated[str, Path(max_length=64)]
) -> None:
    """Revoke it: its workers are refused at once, and what they had is tried again elsewhere."""
    with state.store.write() as tx:
        revoke(tx, caller.user.id, token_id)
