"""Whose requests these are, before anybody looks: by the secrets that were right before, else by the address."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie

from starlette.requests import HTTPConnection
from starlette.types import Scope

SESSION_COOKIE = "easel_session"
_MOST = 50_000


class KnownUsers:
    """Users by a hash of what they showed: all tokens and sessions of a person are one user, and made-up ones are none.

    Asked and told by several threads: each step is one operation of the dictionary.
    """

    def __init__(self) -> None:
        self._users: OrderedDict[bytes, str] = OrderedDict()

    def of(self, scope: Scope) -> str | None:
        """The user whose secret this was; None where there is none, or it was not seen right."""
        key = _key(scope["headers"])
        return None if key is None else self._users.get(key)

    def remember(self, connection: HTTPConnection, user: str) -> None:
        """What this request showed belongs to this user."""
        key = _key(connection.scope["headers"])
        if key is not None and self._users.get(key) != user:
            self._users[key] = user
            if len(self._users) > _MOST:
                self._users.popitem(last=False)

    def forget(self, connection: HTTPConnection) -> None:
        """What this request showed is no longer right."""
        key = _key(connection.scope["headers"])
        if key is not None:
            self._users.pop(key, None)


def address_of(scope: Scope) -> str:
    """Where a request comes from, as the server was told by whom it trusts."""
    client = scope.get("client")
    return client[0] if client else "unknown"


def _key(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    """A hash of the token or the session's cookie. No digest that anybody keeps: it only must not be guessed from.

    What is no bearer token may be what a proxy before us asks of everybody: then the cookie counts, too.
    """
    found = dict(headers)
    secret = found.get(b"authorization", b"")
    if not secret.lower().startswith(b"bearer ") and b"cookie" in found:
        try:
            cookie = SimpleCookie(found[b"cookie"].decode("latin-1")).get(SESSION_COOKIE)
        except CookieError:
            return None
        secret += b" session " + cookie.value.encode() if cookie and cookie.value else b""
    return hashlib.blake2b(secret, digest_size=16).digest() if secret else None
