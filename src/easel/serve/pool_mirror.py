"""The pool as a server sees it: it follows the same events as the controller and decides nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from easel.serve.learning import build_keeper, rules_of
from easel.serve.state import AppState
from easel.store.engine import Tx
from easel.tenancy.keeper import Keeper
from easel.tenancy.pool_view import PoolView


class _Mirror:
    """One keeper for all requests, one at a time: it moves from event to event."""

    def __init__(self, keeper: Keeper) -> None:
        self.keeper, self.lock = keeper, threading.Lock()


_MIRRORS: dict[str, _Mirror] = {}
_MAKING = threading.Lock()


@contextmanager
def looking(state: AppState, tx: Tx) -> Iterator[PoolView]:
    """The pool as of now. Nobody else looks meanwhile."""
    key = f"{state.settings.folder} {state.settings.database}"
    with _MAKING:
        if key not in _MIRRORS:
            _MIRRORS[key] = _Mirror(_keeper(state))
    mirror = _MIRRORS[key]
    with mirror.lock:
        if mirror.keeper.store is not state.store:
            mirror.keeper = _keeper(state)
        mirror.keeper.follow(tx)
        yield mirror.keeper


def _keeper(state: AppState) -> Keeper:
    settings = state.settings
    return build_keeper(state.lake, rules=rules_of(settings), max_active=settings.max_active_jobs)
