"""What an app, a study or a job is doing or waiting for, as a fact that code compares; sentences are made elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class Standing(StrEnum):
    """The first that applies, in this order, is what people are told."""

    RUNNING = "running"
    WAITS_FOR_TURN = "waits-for-turn"
    # Its own people can change these.
    LACKS_EXAMPLES = "lacks-examples"
    WAITS_FOR_FEED = "waits-for-feed"
    PAUSED = "paused"
    TARGET_REACHED = "target-reached"
    DEADLINE_PASSED = "deadline-passed"
    OWN_BUDGET_SPENT = "own-budget-spent"
    NOTHING_IN_TIME = "nothing-in-time"
    NOTHING_AFFORDABLE = "nothing-affordable"
    EXHAUSTED = "exhausted"
    LITTLE_TO_GAIN = "little-to-gain"
    # These need an admin, or time.
    NO_RIGHTS = "no-rights"
    QUEUE_PAUSED = "queue-paused"
    QUEUE_FULL = "queue-full"
    PROJECT_BUDGET_SPENT = "project-budget-spent"
    FITS_NOWHERE = "fits-nowhere"
    NO_DEVICE = "no-device"
    REFUSED = "refused"
    # Of studies and jobs.
    NOT_STARTED = "not-started"
    STOPPED = "stopped"
    FINISHED = "finished"
    WAITS_FOR_JOBS = "waits-for-jobs"
    WAITS_FOR_ROOM = "waits-for-room"
    ENDED = "ended"


DONE = frozenset(
    {
        Standing.TARGET_REACHED,
        Standing.DEADLINE_PASSED,
        Standing.OWN_BUDGET_SPENT,
        Standing.EXHAUSTED,
        Standing.LITTLE_TO_GAIN,
    }
)
"""Nothing more starts by itself: an app that stands so is done until its people change something."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why nothing of a tenant starts: since when, who did it, and the numbers that a sentence needs."""

    kind: Standing
    since: datetime | None = None
    by: str | None = None
    facts: Mapping[str, float | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Account:
    """What something does or waits for, as code compares it and as people read it."""

    status: Standing
    sentence: str
    since: datetime | None = None
