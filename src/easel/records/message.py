"""Messages to people: about what, by which way, and how far each has come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from easel.ids import UserId


class Topic(StrEnum):
    """What a person may subscribe to."""

    JOB_ENDED = "job-ended"
    JOB_FAILED = "job-failed"
    APP_IMPROVED = "app-improved"
    APP_DONE = "app-done"
    STUDY_FINISHED = "study-finished"
    BUDGET = "budget"
    DEVICE_LOST = "device-lost"
    BACKUP_FAILED = "backup-failed"


class ChannelKind(StrEnum):
    """How messages travel."""

    MAIL = "mail"
    WEBHOOK = "webhook"
    SLACK = "slack"
    MATRIX = "matrix"


class Delivery(StrEnum):
    WAITING = "waiting"
    SENT = "sent"
    FAILED = "failed"


TOPICS: Mapping[str, frozenset[Topic]] = {
    "job.finished": frozenset({Topic.JOB_ENDED}),
    "job.killed": frozenset({Topic.JOB_ENDED}),
    "job.failed": frozenset({Topic.JOB_ENDED, Topic.JOB_FAILED}),
    "app.improved": frozenset({Topic.APP_IMPROVED}),
    "app.done": frozenset({Topic.APP_DONE}),
    "study.finished": frozenset({Topic.STUDY_FINISHED}),
    "budget.warned": frozenset({Topic.BUDGET}),
    "device.lost": frozenset({Topic.DEVICE_LOST}),
    "backup.failed": frozenset({Topic.BACKUP_FAILED}),
}
"""Which topics an event of the history belongs to."""
NOTIFY_TAG = "notify"
"""A job with this tag is told of by every channel of its owner when it ends, whatever they subscribed to."""


@dataclass(frozen=True, slots=True)
class QuietHours:
    """Minutes after midnight in `zone`; from 22:00 to 07:00 goes over midnight."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Channel:
    """One way to reach one person, and what they want to be told by it."""

    id: str
    user_id: UserId
    way: ChannelKind
    address: str
    topics: frozenset[Topic]
    zone: str
    quiet: QuietHours | None
    digest_at: int | None
    """Minute of the day at which everything is sent as one message; None: each at once."""
    stopped: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """One event for one channel."""

    id: str
    channel_id: str
    kind: str
    subject: str
    project: str | None
    body: Mapping[str, Any]
    at: datetime
    due_at: datetime
    attempts: int
    state: Delivery
    error: str | None
