"""Log in on a machine without a browser (RFC 8628): it shows a code, which somebody types in elsewhere."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from easel.errors import Conflict, Denied, NotFound, QuotaExhausted
from easel.flow.issue_token import IssuedToken, issue_token
from easel.flow.secrets import hashed, same
from easel.records.identity import Caller
from easel.store import identity, sign_on
from easel.store.engine import Tx
from easel.store.sign_on import DeviceLogin, DeviceState

LASTS = timedelta(minutes=10)
INTERVAL = timedelta(seconds=5)
MOST = 1000
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
"""No vowels, no digits: no words, and nothing that is mistaken for something else."""


@dataclass(frozen=True, slots=True)
class DeviceCode:
    device_code: str
    user_code: str


class Wait(StrEnum):
    """Why there is no token yet, in the words of RFC 8628."""

    PENDING = "authorization_pending"
    SLOWER = "slow_down"
    DENIED = "access_denied"
    EXPIRED = "expired_token"


LOOPBACK = "loopback."
"""How device codes begin whose token is given only with what the browser brought to the machine that asks."""


def proof(key: bytes, user_code: str) -> str:
    """Returns what the browser takes to the command line: it shows that both are on one machine."""
    return hmac.new(key, f"device login {plain(user_code)}".encode(), hashlib.sha256).hexdigest()


def begin(tx: Tx, client: str, address: str, *, loopback: bool = False) -> DeviceCode:
    """Begins a log-in. With `loopback` the token is given only with the `proof` that the browser brings."""
    if sign_on.count_devices(tx) >= MOST:
        raise QuotaExhausted(
            "too many log-ins wait for their code: try again in some minutes", retry_after=60
        )
    secret = f"{LOOPBACK if loopback else ''}{secrets.token_urlsafe(32)}"
    made = DeviceCode(secret, "".join(secrets.choice(_LETTERS) for _ in range(8)))
    sign_on.add_device(tx, hashed(made.device_code), made.user_code, client[:200], address[:64], LASTS)
    return made


def look(tx: Tx, user_code: str) -> DeviceLogin:
    """What asks for the log-in: whoever allows it should know."""
    found = sign_on.device(tx, user_code=plain(user_code))
    if found is None or found.state is not DeviceState.WAITING:
        raise NotFound("no log-in waits for this code: look at it again, or begin anew")
    return found


def answer(tx: Tx, caller: Caller, user_code: str, allow: bool) -> DeviceLogin:
    """The person in front of the browser allows or denies it, once."""
    if caller.user.service or caller.scope is not None:
        raise Denied("only a person allows a log-in, from a session of their own")
    found = look(tx, user_code)
    state = DeviceState.ALLOWED if allow else DeviceState.DENIED
    if not sign_on.answer_device(tx, found.device_hash, state, caller.user.id, caller.token_id):
        raise Conflict("this code was answered at the same moment: look again")
    body = {"client": found.client, "address": found.address}
    tx.emit(f"device.{state.value}", caller.user.id, actor=caller.user.id, body=body)
    return found


def poll(tx: Tx, device_code: str, brought: str, key: bytes) -> IssuedToken | Wait:
    """The token, once, or why not yet. `brought` is the proof that a browser took to the command line, if it did."""
    found = sign_on.device(tx, device_hash=hashed(device_code))
    if found is None:
        return Wait.EXPIRED
    if device_code.startswith(LOOPBACK) and not same(brought, proof(key, found.user_code)):
        return Wait.PENDING
    hurried = found.asked_at is not None and tx.now - found.asked_at < INTERVAL * 0.8
    sign_on.touch_device(tx, found.device_hash)
    if found.state is DeviceState.WAITING:
        return Wait.SLOWER if hurried else Wait.PENDING
    sign_on.end_device(tx, found.device_hash)
    user = None if found.user_id is None else identity.find_user(tx, found.user_id)
    allowed_by = None if found.token_id is None else identity.find_token(tx, found.token_id)
    if found.state is DeviceState.DENIED or user is None or user.disabled_at is not None:
        return Wait.DENIED
    if allowed_by is None or not allowed_by.works(tx.now):
        return Wait.DENIED
    caller = Caller(user, allowed_by.id, until=allowed_by.expires_at)
    return issue_token(tx, caller, user.id, f"login: {found.client}"[:100].replace("/", "-"), None)


def plain(user_code: str) -> str:
    return "".join(c for c in user_code.upper() if c in _LETTERS)[:16]
