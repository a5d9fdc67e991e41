"""A browser's way to a provider and back: single use, bound to the browser, back to our own pages only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from easel.declare.sign_on import GroupRules
from easel.errors import InvalidInput, NotFound, Unauthenticated
from easel.flow.issue_token import SIGN_ON_TOKEN_LASTS
from easel.flow.log_in import SESSION_LASTS, SIGN_ON_TOKEN
from easel.flow.secrets import hashed, new_session, new_token, same
from easel.flow.sign_on.rules import KnownPerson, LeftGroup, admit
from easel.ids import UserId
from easel.records.identity import Caller
from easel.store import identity, sign_on
from easel.store.engine import Store, Tx

if TYPE_CHECKING:
    from easel.flow.sign_on.oidc import OidcProvider

LASTS = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Opened:
    """A session that a sign-on opened; `secret` is the cookie's."""

    caller: Caller
    secret: str
    next: str


def own_page(address: str) -> str:
    """The address, if it is a path of ours: a log-in must not send anybody elsewhere."""
    bad = not address.startswith("/") or address[1:2] in ("/", "\\") or "\\" in address
    if bad or len(address) > 2000 or any(ord(c) < 32 for c in address):
        raise InvalidInput("after the log-in the browser goes to a page of this server only: give a path")
    return address


def start(store: Store, provider: OidcProvider, next_page: str, redirect_uri: str) -> tuple[str, str]:
    """Where the browser goes, and the secret that it must bring back in a cookie."""
    page = own_page(next_page)
    gone = provider.depart(redirect_uri)
    with store.write() as tx:
        row = sign_on.SignOn(provider.settings.name, gone.nonce, gone.verifier, page)
        sign_on.begin(tx, hashed(gone.state), row, LASTS)
    return gone.url, gone.state


def finish(
    store: Store, provider: OidcProvider, answer: Mapping[str, str], cookie: str, redirect_uri: str
) -> Opened:
    """The session of who came back. A state counts once, for the browser and the provider that it was made for."""
    state = answer.get("state", "")
    if not state or not cookie or not same(state, cookie):
        raise Unauthenticated("this log-in was not begun in this browser, or took too long: begin again")
    with store.write() as tx:
        begun = sign_on.take(tx, hashed(state))
    if begun is None or begun.provider != provider.settings.name:
        raise Unauthenticated("this log-in was used already, or took too long: begin again")
    person = provider.arrive(answer, begun.nonce, begun.verifier, redirect_uri)
    return open_session(store, provider.settings, person, begun.next)


def open_session(store: Store, rules: GroupRules, person: KnownPerson, next_page: str) -> Opened:
    """A session for somebody whom a provider vouches for, with a token for this session alone.

    The token lives longer than the session: what is made with it, for the command line, works for the whole day.
    """
    refused: LeftGroup | None = None
    secret = new_session()
    with store.write() as tx:
        try:
            user = admit(tx, rules, person)
        except LeftGroup as error:
            refused = error
        else:
            caller = _token(tx, rules, user.id, secret, person.session)
    if refused is not None:
        raise refused
    return Opened(caller, secret, next_page)


def _token(tx: Tx, rules: GroupRules, user_id: UserId, secret: str, sid: str | None) -> Caller:
    user = identity.find_user(tx, user_id)
    if user is None:
        raise NotFound("the account is gone")
    name, until = f"{SIGN_ON_TOKEN}{rules.shown}"[:100], tx.now + SIGN_ON_TOKEN_LASTS
    token = identity.add_token(tx, user.id, name, hashed(new_token()), until)
    identity.add_session(tx, hashed(secret), token.id, tx.now + SESSION_LASTS, sid)
    tx.emit("session.opened", user.id, actor=user.id, body={"provider": rules.name})
    return Caller(user, token.id, until=until)


def log_out_by_provider(store: Store, provider: OidcProvider, logout_token: str) -> int:
    """Ends the sessions that a provider ended, with their tokens; returns how many.

    Only those that were open when it said so: a copy of the token that comes later ends nothing new.
    """
    told = provider.logged_out(logout_token)
    before = datetime.fromtimestamp(told.at, UTC) + timedelta(seconds=1)
    with store.write() as tx:
        whose = (provider.settings.name, told.subject, told.session)
        ended = sign_on.end_sessions(tx, *whose, before, SIGN_ON_TOKEN)
        for user_id in sorted(set(ended)):
            body = {"provider": provider.settings.name, "sessions": ended.count(user_id)}
            tx.emit("session.ended", user_id, actor=user_id, body=body)
    return len(ended)
