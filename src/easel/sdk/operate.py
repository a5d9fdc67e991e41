"""What admins ask of a running server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from easel.sdk.connection import ask
from easel.wire import operate as wire

if TYPE_CHECKING:
    from easel.sdk.client import Client


class Operations:
    """For platform admins."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def health(self) -> wire.Health:
        """What is well and what is wrong."""
        return self._client.connection.get("/api/v1/health", wire.Health)

    def cordon(self, reason: str = "") -> wire.Cordoned:
        """Let `/readyz` of the server that answers say no."""
        return self._client.connection.put("/api/v1/cordon", ask(wire.Cordon, reason=reason), wire.Cordoned)

    def uncordon(self) -> None:
        """Take requests again."""
        self._client.connection.delete("/api/v1/cordon")
