"""When a message may go: quiet hours, the daily digest, and the pause after a try that failed. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from easel.records.message import Channel, QuietHours

PAUSES_S = (60.0, 300.0, 1800.0, 7200.0, 21_600.0, 43_200.0)
"""After the first, second, … try that failed; after the last one the message is given up."""


def next_try(attempts: int, now: datetime) -> datetime | None:
    """When to try again after `attempts` tries failed; None: never."""
    if attempts > len(PAUSES_S):
        return None
    return now + timedelta(seconds=PAUSES_S[attempts - 1])


def allowed_at(channel: Channel, written: datetime, now: datetime) -> datetime:
    """The first moment from `now` on at which a message of this age may go by this channel."""
    local = now.astimezone(ZoneInfo(channel.zone))
    if channel.digest_at is not None:
        sends = _after(written.astimezone(ZoneInfo(channel.zone)), channel.digest_at)
        return max(sends, now)
    if channel.quiet is not None and _is_quiet(channel.quiet, local):
        return _after(local, channel.quiet.end)
    return now


def _is_quiet(quiet: QuietHours, local: datetime) -> bool:
    minute = local.hour * 60 + local.minute
    if quiet.start <= quiet.end:
        return quiet.start <= minute < quiet.end
    return minute >= quiet.start or minute < quiet.end


def _after(local: datetime, minute: int) -> datetime:
    """The first time of day `minute` after a moment."""
    sends = local.replace(hour=minute // 60, minute=minute % 60, second=0, microsecond=0)
    return sends if sends > local else sends + timedelta(days=1)
