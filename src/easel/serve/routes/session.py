"""Who am I, and the dashboard's log-in."""

from __future__ import annotations

from fastapi import Request, Response

from easel.declare.verbs import Verb
from easel.errors import Unauthenticated
from easel.flow.authenticate import Secret
from easel.flow.log_in import SESSION_LASTS, log_in, log_out
from easel.flow.prices import book_now
from easel.flow.secrets import csrf_token
from easel.records.identity import Caller
from easel.serve.access import SESSION_COOKIE, SignedIn, State, acts, address_of, anyone, presented_secret
from easel.serve.audit import note_caller
from easel.serve.router import Router
from easel.serve.state import AppState
from easel.wire.identity import LogIn, Me, User

router = Router(prefix="/api/v1", tags=["session"])


@router.get("/me", response_model=Me)
def whoami(request: Request, state: State, caller: SignedIn) -> Me:
    """Who this token or session belongs to."""
    return _me(state, caller, presented_secret(request))


@router.post("/session", response_model=Me, dependencies=[anyone])
def open_session(request: Request, response: Response, state: State, body: LogIn) -> Me:
    """Trade a token for a session cookie that scripts cannot read."""
    try:
        caller, secret = log_in(state.store, body.token.strip())
        note_caller(caller)
    except Unauthenticated:
        state.failed_logins.note(address_of(request.scope))
        raise
    response.set_cookie(
        SESSION_COOKIE,
        secret,
        max_age=int(SESSION_LASTS.total_seconds()),
        httponly=True,
        samesite="strict",
        secure=state.settings.https,
        path="/",
    )
    return _me(state, caller, Secret(secret, is_session=True))


@router.delete("/session", status_code=204)
@acts(Verb.READ)
def close_session(request: Request, response: Response, state: State, caller: SignedIn) -> None:
    """Log the browser out. The token itself stays valid."""
    if session := request.cookies.get(SESSION_COOKIE):
        log_out(state.store, caller, session)
    response.delete_cookie(SESSION_COOKIE, path="/", samesite="strict", httponly=True)


def _me(state: AppState, caller: Caller, secret: Secret | None) -> Me:
    with state.store.read() as tx:
        currency = book_now(tx).currency
    csrf = csrf_token(secret.text) if secret and secret.is_session else None
    return Me(
        user=User.model_validate(caller.user),
        token_id=caller.token_id,
        currency=currency,
        csrf_token=csrf,
    )
