"""The cost of runs to come, from what the database knows: profiles and prices."""

from __future__ import annotations

from easel.flow.price.billing import book_now
from easel.flow.price.provision import fitted, models
from easel.price.expect import CostModel
from easel.records.identity import Caller
from easel.store.engine import Tx


def cost_model(tx: Tx, caller: Caller, profile: str) -> CostModel:
    """The newest model of a profile at today's prices. Conflict, with the remedy, where it has no model yet."""
    return CostModel(*models(fitted(tx, caller, profile)), book_now(tx))
