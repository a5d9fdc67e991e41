"""The client that a command uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from easel.sdk.client import Client


def connect(project: str | None = None) -> Client:
    from easel.sdk.client import Client  # here, so that help and completion need not wait for it

    return Client(project=project)
