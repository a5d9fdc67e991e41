"""Where people sign on, if not with Easel's own tokens."""

from __future__ import annotations

from easel.records.identity import Caller
from easel.store import sign_on
from easel.store.engine import Tx


def provider_of(tx: Tx, caller: Caller) -> str | None:
    """Returns the name of the provider that the caller signs on with; None for one who has only tokens."""
    return sign_on.provider_of(tx, caller.user.id)
