"""Distinct id types, and how ids are made: a prefix that says what it names, then a time-sortable ULID."""

from __future__ import annotations

import random
from datetime import datetime
from typing import NewType

ProjectId = NewType("ProjectId", str)
UserId = NewType("UserId", str)
TokenId = NewType("TokenId", str)
JobId = NewType("JobId", str)
UploadId = NewType("UploadId", str)
AppId = NewType("AppId", str)
StudyId = NewType("StudyId", str)
TrialId = NewType("TrialId", str)
DeviceId = NewType("DeviceId", str)

_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"


def mint(prefix: str, now: datetime, rng: random.Random) -> str:
    """A new id such as `prj_01jc…`: 48 bits of milliseconds, then 80 random bits, so that ids sort by age."""
    bits = (int(now.timestamp() * 1000) << 80) | rng.getrandbits(80)
    return f"{prefix}_" + "".join(_CROCKFORD[(bits >> shift) & 31] for shift in range(125, -1, -5))


LEAST_END = 4
"""So many characters of an id's end may stand for it."""


def id_end(text: str) -> str | None:
    """Returns what `text` says about the end of an id: `m6nyh5`, `…m6nyh5`; None for anything longer or stranger."""
    end = text.removeprefix("…").lower()
    if LEAST_END <= len(end) < 26 and all(letter in _CROCKFORD for letter in end):
        return end
    return None
