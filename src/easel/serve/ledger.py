"""The ledger: a quiet loop beside the controller that bills, watches budgets and profiles, makes promises to
jobs that wait and compares them with what came.

It is kept where the controller acts. Should two do so for a moment, each step is a transaction that sees what the other
has done.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from easel.errors import EaselError
from easel.flow.budgets import stops_in
from easel.flow.jobs.promises import PromiseKeeper
from easel.flow.price.billing import anything_to_bill, bill_ended
from easel.flow.price.profile import watch_profiles
from easel.flow.price.provision import compare_promises
from easel.flow.price.watch_budgets import watch_budgets
from easel.run.share import HALF_LIFE_S
from easel.store import billing
from easel.store.engine import Store

log = logging.getLogger("easel.ledger")
EVERY_S = 1.0


def keep_books(
    store: Store,
    leads: Callable[[], bool],
    stopping: threading.Event,
    half_life_s: float = HALF_LIFE_S,
    every: float = EVERY_S,
    max_active: int = 8,
    grace_s: float = 5.0,
) -> None:
    """Bills until `stopping` is set. Trouble is logged and waited out: bills can be late, never lost."""
    promised = PromiseKeeper(store, max_active, half_life_s)
    while not stopping.wait(every):
        if not leads():
            continue
        try:
            turn(store, half_life_s, grace_s)
            promised.turn()
        except EaselError as error:
            log.warning("the ledger waits: %s", error)
        except Exception:
            log.exception("the ledger could not be kept; trying again")


def turn(store: Store, half_life_s: float = HALF_LIFE_S, grace_s: float = 5.0) -> None:
    """One round: everything that can be settled now is. Jobs that are stopped have `grace_s` to end."""
    while _bill(store, half_life_s):
        pass
    with store.read() as tx:
        budgets = billing.all_budgets(tx)
    if budgets:
        with store.write() as tx:
            watch_budgets(tx, stops_in(grace_s))
    watch_profiles(store)
    compare_promises(store)


def _bill(store: Store, half_life_s: float) -> int:
    with store.read() as tx:
        if not anything_to_bill(tx):
            return 0
    with store.write() as tx:
        return bill_ended(tx, half_life_s=half_life_s)
