"""The history, in pages and live."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from easel.wire.event import Event

if TYPE_CHECKING:
    from easel.sdk.client import Client


class Events:
    def __init__(self, client: Client) -> None:
        self._client = client

    def list(
        self,
        limit: int = 50,
        filter: list[str] | None = None,  # noqa: A002
        everywhere: bool = False,
    ) -> list[Event]:
        """The newest first; `everywhere` is for platform admins."""
        params = {"limit": min(limit, 200), "filter": filter}
        return list(islice(self._client.connection.pages(self._path(everywhere), Event, params), limit))

    def follow(self, after: int = 0, everywhere: bool = False) -> Iterator[Event]:
        """Events as they happen, without end; a broken connection is resumed."""
        for data in self._client.connection.events(f"{self._path(everywhere)}/stream", after):
            yield Event.model_validate(data)

    def _path(self, everywhere: bool) -> str:
        return "/api/v1/events" if everywhere else f"{self._client.root}/events"
