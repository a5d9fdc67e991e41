"""Queries on the outbox. Rows are added by `Tx.write_events`, with the events that they are about."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Select, delete, func, insert, select, update

from easel.ids import UserId
from easel.records.message import (
    NOTIFY_TAG,
    TOPICS,
    Channel,
    ChannelKind,
    Delivery,
    QueuedMessage,
    QuietHours,
    Topic,
)
from easel.store.schema.apps import apps
from easel.store.schema.identity import memberships, projects, users
from easel.store.schema.jobs import jobs
from easel.store.schema.messages import message_channels, outbox
from easel.store.schema.studies import studies

if TYPE_CHECKING:
    from easel.store.engine import AnyRow, NewEvent, Tx

_OWNED = {"job": jobs, "app": apps, "study": studies}


def queue_messages(conn: Connection, now: datetime, emitted: Sequence[NewEvent]) -> None:
    """Put a row into the outbox for each channel that wants to hear of these events, due at once."""
    told = [event for event in emitted if event.kind in TOPICS]
    if not told:
        return
    channels = conn.execute(_OPEN_CHANNELS).all()
    if not channels:
        return
    rows: list[dict[str, Any]] = []
    for event in told:
        listeners = _listeners(conn, event)
        if not listeners:
            continue
        topics = {topic.value for topic in TOPICS[event.kind]}
        asked = _asked_for(conn, event)
        where = select(projects.c.name).where(projects.c.id == event.project_id)
        project = conn.execute(where).scalar_one_or_none() if event.project_id else None
        rows += [
            {
                "channel_id": channel.id,
                "kind": event.kind,
                "subject": event.subject,
                "project": project,
                "body": {**_name(conn, event), **event.body},
                "at": now,
                "due_at": now,
                "attempts": 0,
                "state": Delivery.WAITING.value,
            }
            for channel in channels
            if channel.user_id in listeners and (asked or topics & set(channel.topics))
        ]
    if rows:
        conn.execute(insert(outbox), rows)


def _listeners(conn: Connection, event: NewEvent) -> set[str]:
    """Whose business an event is: its owner's; a budget's of the project's admins; a device's of platform admins.

    A project without an admin, as the first admin's token makes it, has the platform's admins.
    """
    noun = event.kind.partition(".")[0]
    if noun in _OWNED:
        table = _OWNED[noun]
        return set(conn.execute(select(table.c.user_id).where(table.c.id == event.subject)).scalars())
    if noun == "budget":
        query = select(memberships.c.user_id).where(
            memberships.c.project_id == event.project_id,
            memberships.c.role == "admin",
            memberships.c.user_id.in_(_people()),
        )
        if admins := set(conn.execute(query).scalars()):
            return admins
    return set(conn.execute(select(users.c.id).where(users.c.platform_admin.is_(True))).scalars())


def _people() -> Select[tuple[str]]:
    """Select the ids of all users who are not disabled."""
    return select(users.c.id).where(users.c.disabled_at.is_(None))


# Every end of a trial or a job asks this: it is built once.
_OPEN_CHANNELS = select(message_channels.c.id, message_channels.c.user_id, message_channels.c.topics).where(
    message_channels.c.stopped.is_(False), message_channels.c.user_id.in_(_people())
)


def _asked_for(conn: Connection, event: NewEvent) -> bool:
    """Whether somebody wants to hear of the end of this very job."""
    if not event.kind.startswith("job."):
        return False
    tag = jobs.c.spec["tags"][NOTIFY_TAG].as_string()
    found = conn.execute(select(tag).where(jobs.c.id == event.subject)).scalar_one_or_none()
    return found is not None


def _name(conn: Connection, event: NewEvent) -> dict[str, str]:
    table = _OWNED.get(event.kind.partition(".")[0])
    if table is None:
        return {}
    return {"name": conn.execute(select(table.c.name).where(table.c.id == event.subject)).scalar_one()}


# Channels. ------------------------------------------------------------------------------------------------


def add_channel(tx: Tx, channel: Channel) -> None:
    tx.execute(insert(message_channels).values(**_columns(channel)))


def change_channel(tx: Tx, channel: Channel) -> None:
    tx.execute(
        update(message_channels).where(message_channels.c.id == channel.id).values(**_columns(channel))
    )


def remove_channel(tx: Tx, channel_id: str) -> None:
    tx.execute(delete(outbox).where(outbox.c.channel_id == channel_id))
    tx.execute(delete(message_channels).where(message_channels.c.id == channel_id))


def channels_of(tx: Tx, user_id: UserId) -> list[Channel]:
    query = select(message_channels).where(message_channels.c.user_id == user_id)
    return [_channel(row) for row in tx.execute(query.order_by(message_channels.c.created_at))]


def find_channel(tx: Tx, channel_id: str) -> Channel | None:
    row = tx.execute(select(message_channels).where(message_channels.c.id == channel_id)).one_or_none()
    return None if row is None else _channel(row)


def _columns(channel: Channel) -> dict[str, Any]:
    return {
        "id": channel.id,
        "user_id": channel.user_id,
        "way": channel.way.value,
        "address": channel.address,
        "topics": sorted(topic.value for topic in channel.topics),
        "zone": channel.zone,
        "quiet_start": channel.quiet.start if channel.quiet else None,
        "quiet_end": channel.quiet.end if channel.quiet else None,
        "digest_at": channel.digest_at,
        "stopped": channel.stopped,
        "created_at": channel.created_at,
    }


def _channel(row: AnyRow) -> Channel:
    return Channel(
        row.id,
        UserId(row.user_id),
        ChannelKind(row.way),
        row.address,
        frozenset(Topic(each) for each in row.topics),
        row.zone,
        None if row.quiet_start is None else QuietHours(row.quiet_start, row.quiet_end),
        row.digest_at,
        row.stopped,
        row.created_at,
    )


# The outbox. ----------------------------------------------------------------------------------------------


def add_message(tx: Tx, channel_id: str, kind: str, body: Mapping[str, Any]) -> None:
    """One that no event asked for: a test."""
    values = {"channel_id": channel_id, "kind": kind, "subject": "", "body": dict(body)}
    fresh = {"at": tx.now, "due_at": tx.now, "attempts": 0, "state": Delivery.WAITING.value}
    tx.execute(insert(outbox).values(**values, **fresh))


def due(tx: Tx, limit: int = 200) -> list[QueuedMessage]:
    """Messages whose time has come, oldest first."""
    query = select(outbox).where(outbox.c.state == "waiting", outbox.c.due_at <= tx.now)
    return [_message(row) for row in tx.execute(query.order_by(outbox.c.due_at, outbox.c.seq).limit(limit))]


def without_reader(tx: Tx, channel_ids: Collection[str]) -> frozenset[str]:
    """The given channels whose owner is disabled."""
    query = select(message_channels.c.id).where(
        message_channels.c.id.in_(channel_ids), message_channels.c.user_id.not_in(_people())
    )
    return frozenset(tx.execute(query).scalars())


def messages_of(tx: Tx, user_id: UserId, limit: int = 50) -> list[QueuedMessage]:
    """The newest messages to a user."""
    mine = select(message_channels.c.id).where(message_channels.c.user_id == user_id)
    query = select(outbox).where(outbox.c.channel_id.in_(mine)).order_by(outbox.c.seq.desc()).limit(limit)
    return [_message(row) for row in tx.execute(query)]


def settle(
    tx: Tx, ids: Sequence[str], state: Delivery, *, due_at: datetime, attempts: int, error: str | None
) -> None:
    values = {"state": state.value, "due_at": due_at, "attempts": attempts, "error": error}
    tx.execute(update(outbox).where(outbox.c.seq.in_([int(each) for each in ids])).values(**values))


def look_again(tx: Tx, channel_id: str) -> None:
    """Have what waits for its time looked at anew, for the channel's times changed; failed tries keep their pause."""
    waiting = (outbox.c.channel_id == channel_id, outbox.c.state == "waiting", outbox.c.attempts == 0)
    tx.execute(update(outbox).where(*waiting).values(due_at=tx.now))


def counts(tx: Tx) -> dict[str, int]:
    """How many messages there are, by state."""
    query = select(outbox.c.state, func.count()).where(outbox.c.state != "sent").group_by(outbox.c.state)
    return {state: int(count) for state, count in tx.execute(query)}


@dataclass(frozen=True, slots=True)
class OutboxState:
    """What waits and what was given up, since when the oldest waits, and why the newest ones failed."""

    waiting: int
    failed: int
    oldest_waiting: datetime | None
    channels: int
    failures: tuple[str, ...]


def look(tx: Tx) -> OutboxState:
    by_state = counts(tx)
    oldest = select(func.min(outbox.c.at)).where(outbox.c.state == Delivery.WAITING.value)
    open_ways = (
        select(func.count()).select_from(message_channels).where(message_channels.c.stopped.is_(False))
    )
    why = select(outbox.c.error).where(outbox.c.error.is_not(None), outbox.c.state != Delivery.SENT.value)
    newest = tx.execute(why.order_by(outbox.c.seq.desc()).limit(50)).scalars()
    return OutboxState(
        by_state.get(Delivery.WAITING.value, 0),
        by_state.get(Delivery.FAILED.value, 0),
        tx.execute(oldest).scalar_one(),
        int(tx.execute(open_ways).scalar_one()),
        tuple(dict.fromkeys(newest))[:5],
    )


def forget_sent(tx: Tx, before: datetime) -> int:
    """Remove what was sent or given up before a moment; returns how many there were."""
    return tx.execute(delete(outbox).where(outbox.c.state != "waiting", outbox.c.at < before)).rowcount


def _message(row: AnyRow) -> QueuedMessage:
    return QueuedMessage(
        str(row.seq),
        row.channel_id,
        row.kind,
        row.subject,
        row.project,
        row.body,
        row.at,
        row.due_at,
        row.attempts,
        Delivery(row.state),
        row.error,
    )
