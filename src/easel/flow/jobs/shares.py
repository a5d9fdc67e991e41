"""One fair share for everybody: usage is charged as attempts are billed, and decides who leaves the queue next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from easel.declare.resources import Resources
from easel.errors import InvalidInput
from easel.ids import UserId
from easel.records.identity import Caller
from easel.records.queue import Line, Owner
from easel.run.share import CORES_PER_GPU, HALF_LIFE_S, MB_PER_CORE, Shares, faded, load
from easel.store import identity, job_queues, pool_shares, shares
from easel.store.engine import Tx
from easel.store.shares import PROJECT, HeldNow, ShareAccount

MOST_WEIGHT = 1000.0


def charge(tx: Tx, used: Mapping[Owner, float], half_life_s: float = HALF_LIFE_S) -> None:
    """Add core-seconds to what owners have used."""
    if not used:
        return
    known = shares.accounts(tx)
    changed = {}
    for owner, seconds in used.items():
        before = known.get(owner, ShareAccount(0.0, tx.now))
        left = faded(before.usage, (tx.now - before.used_at).total_seconds(), half_life_s)
        changed[owner] = replace(before, usage=left + seconds, used_at=tx.now)
    shares.put(tx, changed)


def core_seconds(spec: Mapping[str, Any], seconds: float) -> float:
    """What an attempt of a job with this stored `spec` has used in `seconds`."""
    asked = spec["resources"]
    resources = Resources(float(asked["vcpu"]), int(asked["memory_mb"]), float(asked["gpus"]))
    return load(resources) * seconds * int(spec.get("workers") or 1)


def usage_now(
    tx: Tx, held: Sequence[HeldNow], expected_s: float, half_life_s: float
) -> tuple[dict[Owner, float], dict[Owner, ShareAccount]]:
    """What everybody has used, what runs now counted for as long as it ran and at least as expected."""
    known = shares.accounts(tx)
    usage = {
        owner: faded(account.usage, (tx.now - account.used_at).total_seconds(), half_life_s)
        for owner, account in known.items()
        if owner[1] != PROJECT
    }
    for job in held:
        cores = max(job.vcpu, job.memory_mb / MB_PER_CORE, CORES_PER_GPU * job.gpus) * job.workers
        ran = 0.0 if job.started_at is None else (tx.now - job.started_at).total_seconds()
        usage[job.owner] = usage.get(job.owner, 0.0) + cores * max(ran, expected_s)
    return usage, known


def with_shares(
    lines: Sequence[Line],
    usage: Mapping[Owner, float],
    known: Mapping[Owner, ShareAccount],
    expected_s: float,
) -> list[Line]:
    """The lines with what their owners have used, and their weights and priorities."""
    found = []
    for line in lines:
        own, project = known.get(line.owner), known.get((line.owner[0], PROJECT))
        found.append(
            replace(
                line,
                usage=usage.get(line.owner, 0.0),
                weight=own.weight if own else 1.0,
                project_weight=project.weight if project else 1.0,
                priority=max(own.priority if own else 0, project.priority if project else 0),
                charge=expected_s,
            )
        )
    return found


class ClaimReason(StrEnum):
    """What makes one claim better than another."""

    PRIORITY = "priority"
    PROJECT = "project"
    OWN = "own"


@dataclass(frozen=True, slots=True)
class BetterClaim:
    """Whose job leaves the queues before somebody's, and why."""

    owner: Owner
    because: ClaimReason


def better_claim(
    tx: Tx, owner: Owner, max_active: int, typical_s: float, half_life_s: float = HALF_LIFE_S
) -> BetterClaim | None:
    """Returns who goes first of those that wait while `owner` does; None where nobody has a better claim."""
    usage, known = usage_now(tx, shares.held_now(tx), typical_s, half_life_s)
    lines = with_shares(job_queues.lines(tx, max_active, 1), usage, known, typical_s)
    claims = {line.owner: Shares.of(lines, usage).claim(line) for line in lines if line.waiting}
    first = min(claims, key=lambda each: (claims[each], each), default=owner)
    if owner not in claims or claims[first] >= claims[owner]:
        return None
    differs = next(k for k, (a, b) in enumerate(zip(claims[first], claims[owner], strict=True)) if a != b)
    return BetterClaim(first, list(ClaimReason)[differs])


@dataclass(frozen=True, slots=True)
class UsedShare:
    """What a user of a project has used of the pool, faded, in core-seconds, and what it is held against.

    `user` is None for the project itself, among all projects.
    """

    user: str | None
    usage: float
    weight: float
    priority: int


def shares_of(tx: Tx, caller: Caller, half_life_s: float = HALF_LIFE_S) -> list[UsedShare]:
    """Returns the project's share among all, then those of its users."""
    known = {owner[1]: one for owner, one in shares.accounts(tx).items() if owner[0] == caller.project_id}
    names = identity.names_of(tx, [user for user in known if user != PROJECT])
    used = {
        user: faded(one.usage, (tx.now - one.used_at).total_seconds(), half_life_s)
        for user, one in known.items()
    }
    whole = known.get(PROJECT, ShareAccount(0.0, tx.now))
    found = [UsedShare(None, sum(used.values()), whole.weight, whole.priority)]
    users = sorted((names[user], user) for user in known if user in names)
    return [*found, *(UsedShare(n, used[u], known[u].weight, known[u].priority) for n, u in users)]


def set_share_of(tx: Tx, caller: Caller, user: str | None, weight: float, priority: int) -> None:
    """`set_share` for a user by name."""
    who = None if user is None else identity.get_member(tx, caller.project_id, user).user.id
    set_share(tx, caller, who, weight, priority)


def keep_for_apps(tx: Tx, caller: Caller, share: float) -> None:
    """An admin's word: trials of apps get at least this share of the pool's cores while they wait for any."""
    if not 0.0 <= share <= 1.0:
        raise InvalidInput(f"a share of {share:g}: give one from 0 (nothing is kept) to 1 (all of the pool)")
    pool_shares.keep(tx, share, caller.user.id)
    tx.emit("share.kept", "apps", actor=caller.user.id, body={"apps": share})


def kept_for_apps(tx: Tx) -> float:
    """The share of the pool that is kept for apps."""
    return pool_shares.least(tx)


def set_share(tx: Tx, caller: Caller, user: UserId | None, weight: float, priority: int = 0) -> None:
    """An admin's word: a user's weight within the project, or with None the project's among all."""
    if user is None and not caller.user.platform_admin:
        raise InvalidInput("only a platform admin weighs projects against each other")
    if not 0.0 < weight <= MOST_WEIGHT:
        raise InvalidInput(f"a weight of {weight:g}: give one above 0 and up to {MOST_WEIGHT:g}")
    if not -10 <= priority <= 10:
        raise InvalidInput(f"a priority of {priority}: give one from -10 to 10")
    owner = (caller.project_id, PROJECT if user is None else user)
    before = shares.accounts(tx).get(owner, ShareAccount(0.0, tx.now))
    shares.put(tx, {owner: replace(before, weight=weight, priority=priority)})
    body = {"user": user, "weight": weight, "priority": priority}
    tx.emit("share.changed", owner[1] or owner[0], project_id=owner[0], actor=caller.user.id, body=body)
