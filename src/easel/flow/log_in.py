"""A browser trades a token for a session cookie, and gives it back."""

from __future__ import annotations

from datetime import timedelta

from easel.errors import Denied
from easel.flow.authenticate import Level, Secret, authenticate
from easel.flow.secrets import hashed, new_session
from easel.records.identity import Caller
from easel.store import identity
from easel.store.engine import Store

SESSION_LASTS = timedelta(hours=12)
SIGN_ON_TOKEN = "sign-on: "  # noqa: S105 - how the tokens are named that no person holds


def log_in(store: Store, token: str) -> tuple[Caller, str]:
    """The caller and the session's secret."""
    caller = authenticate(store, Secret(token, is_session=False), Level.SIGNED_IN, None)
    if caller.user.service or caller.scope is not None:
        raise Denied("a browser needs a person's token that may do everything: this one is for programs")
    secret = new_session()
    with store.write() as tx:
        identity.add_session(tx, hashed(secret), caller.token_id, tx.now + SESSION_LASTS)
        tx.emit("session.opened", caller.user.id, actor=caller.user.id)
    return caller, secret


def log_out(store: Store, caller: Caller, session_secret: str) -> None:
    """End the session, and with it the token that a sign-on made for it alone."""
    with store.write() as tx:
        identity.remove_session(tx, hashed(session_secret))
        token = identity.find_token(tx, caller.token_id)
        if token is not None and token.name.startswith(SIGN_ON_TOKEN):
            identity.revoke_token(tx, token.id)
