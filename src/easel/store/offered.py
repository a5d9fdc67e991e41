"""Work that is pulled, as the database keeps it: attempts, what devices said of them, and who pulls."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple


class OfferedWork(NamedTuple):
    """Every column of the table `work`, in its order: one member of an attempt that an executor holds."""

    seq: int
    key: str
    executor: str
    gang: str
    rank: int
    size: int
    sealed: str
    vcpu: float
    memory_mb: int
    gpus: float
    time_limit_s: float | None
    wants: Mapping[str, Any]
    short: bool
    first: bool
    give_way: bool
    device: str | None
    known: bool
    received: int
    shift: float | None
    over: bool
    kill: int
    forgotten: int
    offered_at: datetime


class HeldWork(NamedTuple):
    """Where a member of an attempt is, whether it is over, and whether its device shall remove it."""

    key: str
    gang: str
    device: str | None
    over: bool
    forgotten: int


class WorkReport(NamedTuple):
    """Every column of the table `work_reports`, in its order: what a device said of an attempt."""

    seq: int
    executor: str
    key: str
    entries: str
    gone: str | None
    gone_end: str | None


class KnownWorker(NamedTuple):
    """Every column of the table `workers`, in its order: a device that pulls."""

    name: str
    executor: str
    token_id: str
    session: int
    beats: int
    labels: Mapping[str, str]
    address: str
    left: bool
