"""Credentials with which machines join the pool; for platform admins."""

from __future__ import annotations

import builtins
from datetime import datetime
from typing import TYPE_CHECKING

from easel.sdk.connection import ask
from easel.wire import worker as wire

if TYPE_CHECKING:
    from easel.sdk.client import Client

_PATH = "/api/v1/worker-tokens"


class WorkerTokens:
    def __init__(self, client: Client) -> None:
        self._client = client

    def list(self) -> builtins.list[wire.WorkerToken]:
        return self._client.connection.get(_PATH, wire.WorkerTokenList).items

    def create(self, name: str, expires_at: datetime | None = None) -> wire.IssuedWorkerToken:
        """Creates a token; its secret is in the answer and nowhere else."""
        body = ask(wire.CreateWorkerToken, name=name, expires_at=expires_at)
        return self._client.connection.post(_PATH, body, wire.IssuedWorkerToken)

    def revoke(self, token_id: str) -> None:
        self._client.connection.delete(f"{_PATH}/{token_id}")
