"""Simulations: `client.simulate(policies=["easel", "greedy"], devices=[1, 4])`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from easel.sdk.connection import ask
from easel.wire import simulation as wire

if TYPE_CHECKING:
    from easel.sdk.client import Client


def simulate(client: Client, **fields: Any) -> wire.Simulated:
    """Fields are those of `wire.simulation.Simulate`."""
    body = ask(wire.Simulate, **fields)
    return client.connection.post(f"{client.root}/simulations", body, wire.Simulated)
