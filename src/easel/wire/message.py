"""Messages and the ways by which they reach people."""

from __future__ import annotations

from typing import Annotated, Literal

from easel.wire.model import Answer, Field, Moment, Request

TopicName = Literal[
    "job-ended",
    "job-failed",
    "app-improved",
    "app-done",
    "study-finished",
    "budget",
    "device-lost",
    "backup-failed",
]
WayName = Literal["mail", "webhook", "slack", "matrix"]
TimeOfDay = Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$", examples=["22:00"])]


class CreateChannel(Request):
    """`address` is a mail address, or where to send: Slack's and Matrix's are shown to nobody again."""

    way: WayName
    address: Annotated[str, Field(min_length=3, max_length=1000, pattern=r"^[^\x00-\x20\x7f]+$")]
    topics: Annotated[list[TopicName], Field(min_length=1, max_length=10)]
    zone: Annotated[str, Field(max_length=64, examples=["Europe/Zurich"])] = "UTC"
    quiet_from: Annotated[TimeOfDay | None, Field(description="From then on nothing is sent")] = None
    quiet_until: TimeOfDay | None = None
    digest_at: Annotated[TimeOfDay | None, Field(description="Everything of a day as one message")] = None


class ChangeChannel(Request):
    """What is not named stays as it is; null for a time of day removes it."""

    topics: Annotated[list[TopicName] | None, Field(min_length=1, max_length=10)] = None
    stopped: Annotated[bool | None, Field(description="Send nothing by it")] = None
    zone: Annotated[str | None, Field(max_length=64, examples=["Europe/Zurich"])] = None
    quiet_from: TimeOfDay | None = None
    quiet_until: TimeOfDay | None = None
    digest_at: TimeOfDay | None = None


class Channel(Answer):
    id: str
    way: WayName
    address: Annotated[str, Field(description="Of Slack and Matrix only the host")]
    topics: list[TopicName]
    zone: str
    quiet_from: str | None
    quiet_until: str | None
    digest_at: str | None
    stopped: bool
    secret: Annotated[
        str | None, Field(description="Of a webhook: with it the receiver checks X-Easel-Signature")
    ] = None


class ChannelList(Answer):
    items: list[Channel]


class Message(Answer):
    id: str
    channel_id: str
    title: str
    at: Moment
    due_at: Moment
    state: Literal["waiting", "sent", "failed"]
    attempts: int
    error: str | None


class OutboxCounts(Answer):
    """How far messages to everybody have come: what waits, what was given up, and since when the oldest waits."""

    waiting: int
    failed: int
    oldest_waiting: Moment | None
    channels: Annotated[int, Field(description="Ways of all people by which something is sent")]
    mail: Annotated[bool, Field(description="Whether a mail server is set")]
    networks: Annotated[list[str], Field(description="Private networks that webhooks may reach")]
    failures: Annotated[list[str], Field(description="Why the newest were given up, or wait for another try")]


class MessageList(Answer):
    items: list[Message]
