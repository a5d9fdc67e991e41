"""A person's channels, what was sent by them, and the link that stops one."""

from __future__ import annotations

from html import escape
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Path, Response

from easel.errors import InvalidInput
from easel.flow.messages import channels
from easel.flow.messages.compose import note
from easel.flow.messages.outward import check_address, networks
from easel.flow.prices import book_now
from easel.records.message import Channel, ChannelKind, QuietHours, Topic
from easel.serve.access import PlatformAdmin, SignedIn, State, anyone
from easel.serve.creating import Create
from easel.serve.messenger import keys_of
from easel.serve.router import Router
from easel.serve.state import AppState, Tx
from easel.wire import message as wire

router = Router(tags=["messages"])

ChannelId = Annotated[str, Path(max_length=40)]
Token = Annotated[str, Path(max_length=200)]


@router.get("/api/v1/messages/channels", response_model=wire.ChannelList)
def list_channels(state: State, caller: SignedIn) -> wire.ChannelList:
    """The ways by which you are told."""
    with state.store.read() as tx:
        found = channels.of_caller(tx, caller)
    return wire.ChannelList(items=[_channel(state, each) for each in found])


@router.post("/api/v1/messages/channels", response_model=wire.Channel, status_code=201)
def add_channel(state: State, caller: SignedIn, create: Create, body: wire.CreateChannel) -> Response:
    """A new way, with what you want to be told by it."""
    start, end = _minute(body.quiet_from), _minute(body.quiet_until)
    wish = channels.ChannelWish(
        ChannelKind(body.way),
        body.address,
        frozenset(Topic(each) for each in body.topics),
        body.zone,
        None if start is None or end is None else QuietHours(start, end),
        _minute(body.digest_at),
    )
    allowed = networks(state.settings.message_networks)

    def make(tx: Tx) -> wire.Channel:
        made = channels.add(
            tx, caller, wish, keys_of(state.settings), lambda url: check_address(url, allowed)
        )
        return _channel(state, made)

    return create(caller, body, make)


@router.patch("/api/v1/messages/channels/{channel}", response_model=wire.Channel)
def change_channel(
    state: State, caller: SignedIn, channel: ChannelId, body: wire.ChangeChannel
) -> wire.Channel:
    """Other topics, other times; stop or go on."""
    with state.store.write() as tx:
        return _channel(state, channels.change(tx, caller, channel, _wanted(body)))


def _wanted(body: wire.ChangeChannel) -> dict[str, Any]:
    """Returns what the request names; quiet hours come as a pair, and both null removes them."""
    wanted: dict[str, Any] = {
        name: value for name in ("stopped", "zone") if (value := getattr(body, name)) is not None
    }
    if body.topics is not None:
        wanted["topics"] = frozenset(Topic(each) for each in body.topics)
    if {"quiet_from", "quiet_until"} & body.model_fields_set:
        start, end = _minute(body.quiet_from), _minute(body.quiet_until)
        if (start is None) != (end is None):
            raise InvalidInput("quiet hours have a beginning and an end: quiet_from and quiet_until")
        wanted["quiet"] = None if start is None or end is None else QuietHours(start, end)
    if "digest_at" in body.model_fields_set:
        wanted["digest_at"] = _minute(body.digest_at)
    return wanted


@router.delete("/api/v1/messages/channels/{channel}", status_code=204)
def remove_channel(state: State, caller: SignedIn, channel: ChannelId) -> None:
    """Remove a way: nothing more is sent by it."""
    with state.store.write() as tx:
        channels.remove(tx, caller, channel)


@router.post("/api/v1/messages/channels/{channel}/test", status_code=202)
def test_channel(state: State, caller: SignedIn, channel: ChannelId) -> dict[str, str]:
    """Send a message by it, to see that it arrives."""
    with state.store.write() as tx:
        channels.test(tx, caller, channel)
    return {"status": "queued"}


@router.get("/api/v1/messages", response_model=wire.MessageList)
def list_messages(state: State, caller: SignedIn) -> wire.MessageList:
    """Your newest messages, and what became of them."""
    with state.store.read() as tx:
        found, currency = channels.messages_to(tx, caller), book_now(tx).currency
    return wire.MessageList(
        items=[
            wire.Message(
                id=each.id,
                channel_id=each.channel_id,
                title=note(each, "", currency).title,
                at=each.at,
                due_at=each.due_at,
                state=each.state.value,
                attempts=each.attempts,
                error=each.error,
            )
            for each in found
        ]
    )


@router.get("/api/v1/messages/outbox", response_model=wire.OutboxCounts)
def look_at_outbox(state: State, caller: PlatformAdmin) -> wire.OutboxCounts:
    """How far messages to everybody have come, without what they say."""
    settings = state.settings
    with state.store.read() as tx:
        found = channels.look_at_outbox(tx)
    return wire.OutboxCounts(
        waiting=found.waiting,
        failed=found.failed,
        oldest_waiting=found.oldest_waiting,
        channels=found.channels,
        mail=bool(settings.smtp_host and settings.mail_from),
        networks=list(settings.message_networks),
        failures=list(found.failures),
    )


_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Easel</title>
<h1>Messages to {address}</h1><p>{told}</p>{form}</html>"""


@router.get("/unsubscribe/{token}", response_class=Response, dependencies=[anyone])
def ask_unsubscribe(state: State, token: Token) -> Response:
    """A page with one button: a mail program that only looks at a link changes nothing."""
    with state.store.read() as tx:
        found = channels.of_link(tx, token, keys_of(state.settings))
    form = '<form method="post"><button>Stop these messages</button></form>'
    shown = found.address if found and found.way is ChannelKind.MAIL else "this channel"
    return Response(_PAGE.format(address=escape(shown), told="", form=form), media_type="text/html")


@router.post("/unsubscribe/{token}", response_class=Response, dependencies=[anyone])
def unsubscribe(state: State, token: Token) -> Response:
    """Stop the channel that the link is about (RFC 8058)."""
    with state.store.write() as tx:
        found = channels.unsubscribe(tx, token, keys_of(state.settings))
    told = "You get no more of them. `easel messages resume` brings them back."
    shown = found.address if found.way is ChannelKind.MAIL else "this channel"
    return Response(_PAGE.format(address=escape(shown), told=told, form=""), media_type="text/html")


def _channel(state: AppState, found: Channel) -> wire.Channel:
    keys = keys_of(state.settings)
    hidden = found.way in (ChannelKind.SLACK, ChannelKind.MATRIX)
    return wire.Channel(
        id=found.id,
        way=found.way.value,
        address=(urlsplit(keys.open(found.address)).hostname or "") if hidden else found.address,
        topics=sorted(topic.value for topic in found.topics),
        zone=found.zone,
        quiet_from=_clock(found.quiet.start) if found.quiet else None,
        quiet_until=_clock(found.quiet.end) if found.quiet else None,
        digest_at=_clock(found.digest_at),
        stopped=found.stopped,
        secret=keys.webhook_secret(found.id) if found.way is ChannelKind.WEBHOOK else None,
    )


def _minute(text: str | None) -> int | None:
    return None if text is None else int(text[:2]) * 60 + int(text[3:])


def _clock(minute: int | None) -> str | None:
    return None if minute is None else f"{minute // 60:02d}:{minute % 60:02d}"
