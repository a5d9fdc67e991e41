"""Quotas of projects and people: set by admins, looked at by members; what is too much is refused at once, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from easel.errors import Denied, QuotaExhausted
from easel.ids import UserId
from easel.records.identity import Caller
from easel.records.quota import Quota, QuotaUse
from easel.store import identity, quotas
from easel.store.engine import Tx
from easel.store.quotas import PROJECT
from easel.store.upsert import lock

GB = 10**9


@dataclass(frozen=True, slots=True)
class QuotaStanding:
    """The quota of the project (`user` is None) or of a person in it, and what is used of it."""

    user: str | None
    quota: Quota
    use: QuotaUse


@dataclass(frozen=True, slots=True)
class QuotaAsk:
    """What is about to be added."""

    bytes: int = 0
    jobs: int = 0
    gpus: float = 0.0


def refusal(whose: str, quota: Quota, use: QuotaUse, ask: QuotaAsk) -> str | None:
    """Why this is too much, in words; None where it is not."""
    if quota.jobs is not None and ask.jobs and use.jobs + ask.jobs > quota.jobs:
        return f"{whose} {_has(whose)} {use.jobs} of {quota.jobs} jobs waiting or running: wait until some have ended"
    if quota.gpu_hours is not None and ask.gpus and use.gpu_hours >= quota.gpu_hours:
        return (
            f"{whose} {_has(whose)} used {use.gpu_hours:.1f} of {quota.gpu_hours:g} GPU-hours this month: "
            "wait for the next month, or ask a platform admin for more"
        )
    if quota.bytes is not None and (ask.bytes or ask.jobs) and use.bytes + ask.bytes > quota.bytes:
        more = f" and this adds {ask.bytes / GB:.2f} GB" if ask.bytes else ""
        return (
            f"{whose} {_has(whose)} {use.bytes / GB:.2f} of {quota.bytes / GB:.2f} GB{more}: "
            "give up what is not needed (`easel storage`, `easel gc --unused`), or ask a platform admin for more"
        )
    return None


def _has(whose: str) -> str:
    return "have" if whose == "you" else "has"


def check_quotas(tx: Tx, caller: Caller, ask: QuotaAsk) -> None:
    """Refuse what the quota of the project or of the caller has no room for."""
    found = quotas.of_project(tx, caller.project_id)
    assert caller.project is not None
    asked = [(PROJECT, f"project {caller.project.name}"), (caller.user.id, "you")]
    asked = [(key, whose) for key, whose in asked if key in found]
    if asked:
        lock(tx, f"quota {caller.project_id}")  # or two at once would both find the last place
    for key, whose in asked:
        why = refusal(whose, found[key], quotas.used(tx, caller.project_id, key, month_start(tx.now)), ask)
        if why is not None:
            raise QuotaExhausted(why)


def has_quotas(tx: Tx, caller: Caller) -> bool:
    return bool(quotas.of_project(tx, caller.project_id))


def month_start(now: datetime) -> datetime:
    return now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def standings(tx: Tx, caller: Caller) -> Sequence[QuotaStanding]:
    """The project's first, then those of people by name; the project's use is told also where it has no quota."""
    found = quotas.of_project(tx, caller.project_id)
    names = identity.names_of(tx, [key for key in found if key != PROJECT])
    start = month_start(tx.now)

    def one(key: UserId, name: str | None) -> QuotaStanding:
        return QuotaStanding(name, found.get(key, Quota()), quotas.used(tx, caller.project_id, key, start))

    people = sorted((names.get(key, key), key) for key in found if key != PROJECT)
    return [one(PROJECT, None), *(one(key, name) for name, key in people)]


def set_quota(tx: Tx, caller: Caller, user: str | None, quota: Quota) -> None:
    """Set what the project (for platform admins), or a person in it, may hold and use. No limit at all removes it."""
    if user is None and not caller.user.platform_admin:
        raise Denied("the quota of a project is set by a platform admin; you may set those of its members")
    project_id = caller.project_id
    key = PROJECT if user is None else identity.get_member(tx, project_id, user).user.id
    quotas.put(tx, project_id, key, quota)
    body = {"user": user, "bytes": quota.bytes, "gpu_hours": quota.gpu_hours, "jobs": quota.jobs}
    tx.emit("quota.set", user or "project", project_id=project_id, actor=caller.user.id, body=body)
