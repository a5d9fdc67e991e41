"""Simulations: `client.simulate(policies=["easel", "greedy"], devices=[1, 4])`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from easel.sdk.connection import ask
from easel.wire import simulation as wire

if TYPE_CHECKING:
    from easel.sdk.client import Client


def pool_sizes(
    client: Client, more: Sequence[int] = (1, 2, 4), *, days: float = 90.0, per_hour: float | None = None
) -> wire.PoolAdvice:
    """Returns what larger pools would bring and cost, by the installation's own history. For platform admins."""
    body = ask(wire.PoolSizes, more=list(more), days=days, per_hour=per_hour)
    return client.connection.post("/api/v1/pool/sizes", body, wire.PoolAdvice)


def simulate(client: Client, **fields: Any) -> wire.Simulated:
    """Fields are those of `wire.simulation.Simulate`."""
    body = ask(wire.Simulate, **fields)
    return client.connection.post(f"{client.root}/simulations", body, wire.Simulated)
