"""How the caller is told of what happens."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from easel.sdk.connection import ask
from easel.wire import message as wire

if TYPE_CHECKING:
    from easel.sdk.client import Client

_PATH = "/api/v1/messages/channels"


class Messages:
    def __init__(self, client: Client) -> None:
        self._client = client

    def channels(self) -> list[wire.Channel]:
        """The ways by which you are told."""
        return self._client.connection.get(_PATH, wire.ChannelList).items

    def add(
        self,
        way: str,
        address: str,
        topics: Sequence[str],
        *,
        zone: str = "UTC",
        quiet: tuple[str, str] | None = None,
        digest_at: str | None = None,
    ) -> wire.Channel:
        """A new way: `mail`, `webhook`, `slack` or `matrix`. `quiet` is ("22:00", "07:00")."""
        start, end = quiet or (None, None)
        body = ask(
            wire.CreateChannel,
            way=way,
            address=address,
            topics=builtins.list(topics),
            zone=zone,
            quiet_from=start,
            quiet_until=end,
            digest_at=digest_at,
        )
        return self._client.connection.post(_PATH, body, wire.Channel)

    def change(self, channel_id: str, **wanted: Any) -> wire.Channel:
        """Changes what is named: `topics`, `stopped`, `zone`, `quiet` (a pair, or None for none), `digest_at`."""
        if "quiet" in wanted:
            wanted["quiet_from"], wanted["quiet_until"] = wanted.pop("quiet") or (None, None)
        if wanted.get("topics") is not None:
            wanted["topics"] = builtins.list(wanted["topics"])
        body = ask(wire.ChangeChannel, **wanted).model_dump(mode="json", exclude_unset=True)
        return self._client.connection.patch(f"{_PATH}/{channel_id}", body, wire.Channel)

    def remove(self, channel_id: str) -> None:
        self._client.connection.delete(f"{_PATH}/{channel_id}")

    def test(self, channel_id: str) -> None:
        """Send a message by it."""
        self._client.connection.request("POST", f"{_PATH}/{channel_id}/test")

    def list(self) -> builtins.list[wire.Message]:
        """Your newest messages, and what became of them."""
        return self._client.connection.get("/api/v1/messages", wire.MessageList).items
