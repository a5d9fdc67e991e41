"""The client that a command uses."""

from __future__ import annotations

from easel.sdk.client import Client


def connect(project: str | None = None) -> Client:
    return Client(project=project)
