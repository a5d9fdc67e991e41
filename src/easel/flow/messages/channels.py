"""What people do with their channels: add, change, remove, test, stop by a link."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from easel.errors import InvalidInput, NotFound, QuotaExhausted
from easel.flow.messages.keys import ChannelKeys
from easel.ids import UserId
from easel.records.identity import Caller
from easel.records.message import Channel, ChannelKind, QueuedMessage, QuietHours, Topic
from easel.store import outbox
from easel.store.engine import Tx

MOST = 10
"""Channels of one person."""
TEST = "message.test"
_MAIL = re.compile(r"[^@\s<>,;:\"()\[\]\\]{1,64}@[A-Za-z0-9.-]{1,190}")
_MATRIX = re.compile(r"https?://[^/]+/_matrix/client/v3/rooms/[^/]+/send/m\.room\.message\?access_token=\S+")


@dataclass(frozen=True, slots=True)
class ChannelWish:
    """A channel as somebody asks for it; times of day are minutes after midnight."""

    way: ChannelKind
    address: str
    topics: frozenset[Topic]
    zone: str = "UTC"
    quiet: QuietHours | None = None
    digest_at: int | None = None


def add(
    tx: Tx, caller: Caller, wish: ChannelWish, keys: ChannelKeys, check_address: Callable[[str], Any]
) -> Channel:
    """A new way to reach the caller. `check_address` refuses what must not be connected to."""
    if len(outbox.channels_of(tx, caller.user.id)) >= MOST:
        raise QuotaExhausted(f"you have {MOST} channels: remove one first")
    _check(wish)
    if wish.way is not ChannelKind.MAIL:
        check_address(wish.address)
    secret = wish.way in (ChannelKind.SLACK, ChannelKind.MATRIX)
    made = Channel(
        tx.mint("chan"),
        caller.user.id,
        wish.way,
        keys.seal(wish.address) if secret else wish.address,
        wish.topics,
        wish.zone,
        wish.quiet,
        wish.digest_at,
        False,
        tx.now,
    )
    outbox.add_channel(tx, made)
    tx.emit("channel.added", made.id, actor=caller.user.id, body={"way": wish.way.value})
    return made


def _check(wish: ChannelWish) -> None:
    if wish.way is ChannelKind.MAIL and not _MAIL.fullmatch(wish.address):
        raise InvalidInput(f"{wish.address[:80]!r} is no mail address: ana@example.org")
    if wish.way is ChannelKind.MATRIX and not _MATRIX.fullmatch(wish.address):
        raise InvalidInput(
            "a Matrix room is https://SERVER/_matrix/client/v3/rooms/ROOM/send/m.room.message?access_token=TOKEN"
        )
    if not wish.topics:
        raise InvalidInput(f"say about what: {', '.join(topic.value for topic in Topic)}")
    _check_zone(wish.zone)


def _check_zone(name: str) -> None:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise InvalidInput(f"there is no time zone {name!r}: use a name such as Europe/Zurich") from None


def of_caller(tx: Tx, caller: Caller) -> list[Channel]:
    """The caller's channels, oldest first."""
    return outbox.channels_of(tx, caller.user.id)


def messages_to(tx: Tx, caller: Caller) -> list[QueuedMessage]:
    """The caller's newest messages."""
    return outbox.messages_of(tx, caller.user.id)


def look_at_outbox(tx: Tx) -> outbox.OutboxState:
    """Returns how far messages to everybody have come."""
    return outbox.look(tx)


def of_link(tx: Tx, token: str, keys: ChannelKeys) -> Channel | None:
    """The channel that a link to unsubscribe is about, if it is still there."""
    return outbox.find_channel(tx, keys.channel_of(token))


def remove(tx: Tx, caller: Caller, channel_id: str) -> None:
    outbox.remove_channel(tx, _mine(tx, caller, channel_id).id)
    tx.emit("channel.removed", channel_id, actor=caller.user.id)


def change(tx: Tx, caller: Caller, channel_id: str, wanted: Mapping[str, Any]) -> Channel:
    """Replaces what `wanted` names: `topics`, `stopped`, `zone`, `quiet`, `digest_at`.

    What waits already follows the new times.
    """
    changed = replace(_mine(tx, caller, channel_id), **wanted)
    if not changed.topics:
        raise InvalidInput("say about what, or stop the channel: `easel messages stop`")
    _check_zone(changed.zone)
    outbox.change_channel(tx, changed)
    outbox.look_again(tx, channel_id)
    tx.emit("channel.changed", channel_id, actor=caller.user.id)
    return changed


def test(tx: Tx, caller: Caller, channel_id: str) -> None:
    """Queue a message that says that messages arrive."""
    outbox.add_message(tx, _mine(tx, caller, channel_id).id, TEST, {})
    tx.wake()


def unsubscribe(tx: Tx, token: str, keys: ChannelKeys) -> Channel:
    """Stop the channel that a link is about; a second time changes nothing."""
    found = outbox.find_channel(tx, keys.channel_of(token))
    if found is None:
        raise NotFound("this channel was removed: nothing is sent by it any more")
    if not found.stopped:
        outbox.change_channel(tx, replace(found, stopped=True))
        tx.emit("channel.changed", found.id, actor=UserId(found.user_id), body={"stopped": True})
    return found


def _mine(tx: Tx, caller: Caller, channel_id: str) -> Channel:
    found = outbox.find_channel(tx, channel_id)
    if found is None or found.user_id != caller.user.id:
        raise NotFound(f"you have no channel {channel_id!r}: see `easel messages ls`")
    return found
