"""GPUs that jobs hold and hardly use: for a month by project and person, and job by job while they still run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from easel.flow.price.chargeback import MICROS, ChargeLine
from easel.flow.prices import draw_bill, price_history
from easel.ids import ProjectId
from easel.store import identity, idle_gpus
from easel.store.engine import Tx
from easel.store.idle_gpus import HeldGpus, IdleCharge


@dataclass(frozen=True, slots=True)
class IdleJob:
    """A job that holds GPUs now and has hardly used them for some of its time; `amount` is for that part."""

    job: str
    name: str
    project: str
    user: str
    device: str | None
    gpus: float
    since: datetime
    held_gpu_hours: float
    idle_gpu_hours: float
    amount: float
    currency: str


def idle_now(tx: Tx) -> list[IdleJob]:
    """Returns the jobs that run and whose GPUs were idle for some of their time, who wasted most first."""
    found = [row for row in idle_gpus.held_now(tx) if row.idle_s > 0]
    people, projects = _names(tx, found)
    made, prices = [], price_history(tx)
    for row in found:
        share = row.idle_share(tx.now)
        hours = max((tx.now - row.since).total_seconds(), 0.0) * row.gpus / 3600
        bill = draw_bill(row.spec, row.since, max(tx.now, row.since), prices)
        made.append(
            IdleJob(
                row.job_id,
                row.name,
                projects[row.project_id],
                people.get(row.user_id, row.user_id),
                row.device,
                row.gpus,
                row.since,
                hours,
                hours * share,
                sum(line.micros for line in bill.lines) * share / MICROS,
                bill.currency,
            )
        )
    return sorted(made, key=lambda one: (-one.idle_gpu_hours, one.job))


def idle_charges(tx: Tx, month: str) -> list[ChargeLine]:
    """Returns what GPUs came to that were held idle, by project and person, the dearest first; what runs included.

    `hours` and `gpu_hours` are those in which GPUs were idle, `held_gpu_hours` all in which they were held.
    """
    running = _running(tx, month)
    sums: dict[tuple[str, str, str], IdleCharge] = {}
    for one in [*idle_gpus.billed(tx, month), *running]:
        sums[one.key] = _together(sums[one.key], one) if one.key in sums else one
    now = Counter(one.key for one in running if one.jobs)
    kept = {key: one for key, one in sums.items() if one.idle_gpu_hours > 0}
    people, projects = _names(tx, kept.values())
    lines = [
        ChargeLine(
            projects[one.project_id],
            people.get(one.user_id, one.user_id),
            one.jobs,
            one.hours,
            one.idle_gpu_hours,
            one.micros / MICROS,
            one.currency,
            one.held_gpu_hours,
            now[key],
        )
        for key, one in kept.items()
    ]
    return sorted(lines, key=lambda line: (-line.amount, -line.gpu_hours, line.project, line.user))


def _running(tx: Tx, month: str) -> list[IdleCharge]:
    """What jobs that hold GPUs now have come to in this month, each by itself."""
    found, prices = [], price_history(tx)
    for row in idle_gpus.held_now(tx):
        bill = draw_bill(row.spec, row.since, max(tx.now, row.since), prices)
        lines = [line for line in bill.lines if line.month == month]
        seconds, share = sum(line.seconds for line in lines), row.idle_share(tx.now)
        if not seconds:
            continue
        found.append(
            IdleCharge(
                row.project_id,
                row.user_id,
                int(share > 0),
                seconds * share / 3600,
                seconds * row.gpus * share / 3600,
                seconds * row.gpus / 3600,
                round(sum(line.micros for line in lines) * share),
                bill.currency,
            )
        )
    return found


def _together(one: IdleCharge, other: IdleCharge) -> IdleCharge:
    return IdleCharge(
        one.project_id,
        one.user_id,
        one.jobs + other.jobs,
        one.hours + other.hours,
        one.idle_gpu_hours + other.idle_gpu_hours,
        one.held_gpu_hours + other.held_gpu_hours,
        one.micros + other.micros,
        one.currency,
    )


def _names(tx: Tx, found: Iterable[HeldGpus | IdleCharge]) -> tuple[dict[str, str], dict[str, str]]:
    """The names of people, and of projects, by their ids."""
    rows = list(found)
    people = identity.names_of(tx, list({each.user_id for each in rows}))
    projects = {each.project_id: identity.find_project(tx, ProjectId(each.project_id)) for each in rows}
    return people, {key: getattr(one, "name", key) for key, one in projects.items()}
