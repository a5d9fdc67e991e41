"""Queries on work that is pulled: offered by a controller, leased by workers, reported on, forgotten."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, case, delete, func, insert, or_, select, update

from easel.declare.resources import Resources
from easel.records.worker import AttemptOffer, Placement
from easel.store.engine import Tx
from easel.store.offered import HeldWork, KnownWorker, OfferedWork, WorkReport
from easel.store.schema.jobs import devices
from easel.store.schema.workers import placements, pools, work, work_reports, workers
from easel.store.upsert import GivenRows, chunks, insert_many, insert_or, is_in, lock, update_many

KILL, KILL_NOW = 1, 2
FORGET, FORGET_OVER = 1, 2
WAITS = and_(work.c.device.is_(None), work.c.over.is_(False), work.c.kill == 0, work.c.forgotten == 0)


@dataclass(frozen=True, slots=True)
class NewWork:
    offer: AttemptOffer
    sealed: str


def lock_work(tx: Tx) -> None:
    """Wait for others who change work or reports to commit: nobody then meets anybody's half-locked rows, and
    numbers of reports become visible in order.
    """
    lock(tx, "work_reports")


# The controller's side. -----------------------------------------------------------------------------------


def raise_fence(tx: Tx, executor: str, fence: int) -> bool:
    """Whether nobody with a larger fence has been here."""
    made = insert_or(tx, pools).values(executor=executor, fence=fence)
    made = made.on_conflict_do_update(
        index_elements=["executor"], set_={"fence": fence}, where=pools.c.fence <= fence
    )
    tx.execute(made)
    largest = select(pools.c.fence).where(pools.c.executor == executor)
    return bool(tx.execute(largest).scalar_one() == fence)


def fence(tx: Tx, executor: str) -> int:
    query = select(pools.c.fence).where(pools.c.executor == executor).with_for_update(read=True)
    return int(tx.execute(query).scalar_one_or_none() or 0)


def offer(tx: Tx, executor: str, new: Sequence[NewWork]) -> None:
    """Offering a key twice offers it once."""
    if not new:
        return
    rows = [
        {
            "key": each.offer.key,
            "executor": executor,
            "gang": each.offer.gang,
            "rank": each.offer.rank,
            "size": each.offer.size,
            "sealed": each.sealed,
            "vcpu": each.offer.resources.vcpu,
            "memory_mb": each.offer.resources.memory_mb,
            "gpus": each.offer.resources.gpus,
            "time_limit_s": each.offer.time_limit_s,
            "wants": dict(each.offer.wants),
            "short": each.offer.short,
            "first": each.offer.first,
            "known": False,
            "received": 0,
            "over": False,
            "kill": 0,
            "forgotten": 0,
            "offered_at": tx.now,
        }
        for each in new
    ]
    tx.execute(insert_or(tx, work).on_conflict_do_nothing(index_elements=["key"]), rows)


def leaving(tx: Tx, gangs: Sequence[str]) -> set[str]:
    """Returns those of these attempts that were withdrawn, and whose removal their device has not confirmed."""
    found: set[str] = set()
    for some in chunks(gangs):
        query = select(work.c.gang).where(is_in(tx, work.c.gang, some), work.c.forgotten > 0)
        found |= {row.gang for row in tx.execute(query)}
    return found


def attempts(tx: Tx, executor: str) -> frozenset[str]:
    """The keys that the executor holds."""
    query = select(work.c.gang).where(work.c.executor == executor, work.c.forgotten == 0)
    return frozenset(row.gang for row in tx.execute(query))


def ask_kill(tx: Tx, gangs: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """Ask for the end of attempts; returns those that had not begun, and those that nobody knows."""
    if not gangs:
        return [], []
    query = select(work).where(work.c.gang.in_(sorted(gangs))).order_by(work.c.key).with_for_update()
    rows = list(tx.execute(query))
    known = {row.gang for row in rows}
    begun = {row.gang for row in rows if row.device is not None}
    for level in (KILL, KILL_NOW):
        of_level = [gang for gang, asked in gangs.items() if asked == level]
        for some in chunks(of_level):
            tx.execute(update(work).where(work.c.gang.in_(some), work.c.kill < level).values(kill=level))
    fresh = {row.gang for row in rows if not row.over} - begun
    return sorted(fresh), sorted(gangs.keys() - known)


def ask_to_give_way(tx: Tx, gangs: Iterable[str]) -> None:
    """Have the devices that run these attempts ask them to stop at their next checkpoint."""
    for some in chunks(sorted(gangs)):
        asked = and_(is_in(tx, work.c.gang, some), work.c.device.is_not(None), work.c.over.is_(False))
        tx.execute(update(work).where(asked).values(give_way=True))


def forget(tx: Tx, gangs: Mapping[str, bool]) -> None:
    """Withdraws attempts: a device removes what it has of them, and what none has is deleted at once."""
    for over in (False, True):
        for some in chunks([gang for gang, each in gangs.items() if each is over]):
            kept = and_(is_in(tx, work.c.gang, some), work.c.device.is_not(None))
            tx.execute(update(work).where(kept).values(forgotten=FORGET_OVER if over else FORGET))
    for some in chunks(list(gangs)):
        keys = select(work.c.key).where(is_in(tx, work.c.gang, some))
        tx.execute(delete(work_reports).where(work_reports.c.key.in_(keys)))
        tx.execute(delete(work).where(is_in(tx, work.c.gang, some), work.c.device.is_(None)))


def reports_after(tx: Tx, executor: str, seq: int, limit: int = 1000) -> list[WorkReport]:
    """Returns what came of an executor's work after the report with this number."""
    query = select(work_reports).where(work_reports.c.executor == executor, work_reports.c.seq > seq)
    return [WorkReport._make(row) for row in tx.execute(query.order_by(work_reports.c.seq).limit(limit))]


def reports_of(tx: Tx, key: str) -> list[WorkReport]:
    """Returns everything that was reported of the attempt and is still there."""
    query = select(work_reports).where(work_reports.c.key == key).order_by(work_reports.c.seq)
    return [WorkReport._make(row) for row in tx.execute(query)]


def take_reports(tx: Tx, numbers: Sequence[int]) -> set[int]:
    """Returns those of these reports that were still there, and deletes them."""
    taken: set[int] = set()
    for some in chunks(numbers):
        statement = delete(work_reports).where(work_reports.c.seq.in_(some)).returning(work_reports.c.seq)
        taken |= {int(row.seq) for row in tx.execute(statement)}
    return taken


def held(tx: Tx, executor: str) -> list[HeldWork]:
    """Returns everything that the executor has, waiting, at a device, over, or to be removed by a device."""
    query = select(work.c.key, work.c.gang, work.c.device, work.c.over, work.c.forgotten)
    return [HeldWork._make(row) for row in tx.execute(query.where(work.c.executor == executor))]


def waiting_offers(tx: Tx, executor: str, limit: int = 1000) -> list[OfferedWork]:
    """Returns what waits for a worker of this executor, in order."""
    query = select(work).where(work.c.executor == executor, WAITS).order_by(work.c.seq).limit(limit)
    return [OfferedWork._make(row) for row in tx.execute(query)]


# The workers' side. -----------------------------------------------------------------------------------------


def lease_candidates(tx: Tx, executors: Iterable[str], limit: int) -> list[OfferedWork]:
    """Returns what waits, in order. Rows that another server is just giving away are passed over."""
    query = (
        select(work)
        .where(work.c.executor.in_(sorted(set(executors))), WAITS)
        .order_by(work.c.first.desc(), work.c.seq)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    return [OfferedWork._make(row) for row in tx.execute(query)]


def of_devices(tx: Tx, names: Iterable[str]) -> dict[str, list[OfferedWork]]:
    """Returns what each of these devices has."""
    found: dict[str, list[OfferedWork]] = {}
    for some in chunks(sorted(set(names))):
        for row in tx.execute(select(work).where(is_in(tx, work.c.device, some)).order_by(work.c.seq)):
            found.setdefault(row.device, []).append(OfferedWork._make(row))
    return found


def find_of_token(tx: Tx, key: str, token_id: str) -> OfferedWork | None:
    """Returns the work `key` if a worker with this token has it."""
    query = select(work).join(workers, workers.c.name == work.c.device)
    row = tx.execute(query.where(work.c.key == key, workers.c.token_id == token_id)).one_or_none()
    return None if row is None else OfferedWork._make(row)


def device_of(tx: Tx, key: str) -> str | None:
    """The worker that has this attempt and has not ended it; None where none has."""
    query = select(work.c.device).where(work.c.key == key, work.c.over.is_(False), work.c.forgotten == 0)
    found: str | None = tx.execute(query).scalar_one_or_none()
    return found


def lease(tx: Tx, given: Mapping[str, str]) -> None:
    """`given` says which key goes to which device."""
    update_many(tx, work.c.key, work.c.device, given)


def reseal(tx: Tx, key: str, sealed: str) -> None:
    tx.execute(update(work).where(work.c.key == key).values(sealed=sealed))


def give_back(tx: Tx, keys: Sequence[str]) -> None:
    """Lets attempts wait again in their old places, whose devices left before they had them."""
    for some in chunks(keys):
        tx.execute(update(work).where(work.c.key.in_(some)).values(device=None))
    if keys:
        tx.wake()


def remove(tx: Tx, keys: Sequence[str]) -> None:
    for some in chunks(keys):
        tx.execute(delete(work_reports).where(is_in(tx, work_reports.c.key, some)))
        tx.execute(delete(work).where(is_in(tx, work.c.key, some)))


@dataclass(frozen=True, slots=True)
class NewReport:
    """`received` counts the entries that are now known of the attempt.

    `gone` says in words, and `gone_end` in a code's, why nothing of it is left. `shift` is our time less its device's
    monotonic clock; the first that was noted stays.
    """

    executor: str
    key: str
    entries: Sequence[Mapping[str, Any]] = ()
    gone: str | None = None
    gone_end: str | None = None
    received: int = 0
    over: bool = False
    shift: float | None = None


def add_reports(tx: Tx, new: Sequence[NewReport], known: Sequence[str] = ()) -> None:
    """Adds reports, and notes what devices have said that they have."""
    lock_work(tx)
    _note(tx, new, known)
    if not new:
        return
    rows = [
        {
            "executor": each.executor,
            "key": each.key,
            "entries": json.dumps(each.entries, separators=(",", ":")),
            "gone": each.gone,
            "gone_end": each.gone_end,
        }
        for each in new
    ]
    insert_many(tx, work_reports, rows)
    tx.wake()


def _note(tx: Tx, new: Sequence[NewReport], known: Sequence[str]) -> None:
    """Notes how far work is; nothing of it is ever taken back."""
    nothing = {"known": False, "received": 0, "over": False, "shift": None}
    rows: dict[str, dict[str, Any]] = {key: {"k": key, **nothing, "known": True} for key in known}
    for each in new:
        row = rows.setdefault(each.key, {"k": each.key, **nothing})
        row["shift"] = each.shift if row["shift"] is None else row["shift"]
        row["received"] = max(row["received"], each.received)
        row["over"] = row["over"] or each.over
    if rows:
        columns = {"k": work.c.key, **{name: work.c[name] for name in nothing}}
        now = GivenRows(tx, columns, list(rows.values()))
        now.execute(
            update(work)
            .where(work.c.key == now["k"])
            .values(
                known=or_(work.c.known, now["known"]),
                received=case((now["received"] > work.c.received, now["received"]), else_=work.c.received),
                over=or_(work.c.over, now["over"]),
                shift=func.coalesce(work.c.shift, now["shift"]),
            )
        )


# Workers. ---------------------------------------------------------------------------------------------------


def worker_rows(tx: Tx, names: Iterable[str]) -> dict[str, KnownWorker]:
    """Returns those of these workers that are known, by name, and locks them."""
    found: dict[str, KnownWorker] = {}
    for some in chunks(sorted(set(names))):
        query = select(workers).where(is_in(tx, workers.c.name, some))
        query = query.order_by(workers.c.name).with_for_update()
        found |= {row.name: KnownWorker._make(row) for row in tx.execute(query)}
    return found


def put_worker(tx: Tx, **values: Any) -> None:
    made = insert_or(tx, workers).values(**values)
    tx.execute(made.on_conflict_do_update(index_elements=["name"], set_=values))


def beat(tx: Tx, beats: Mapping[str, int]) -> None:
    update_many(tx, workers.c.name, workers.c.beats, beats)


def leave(tx: Tx, names: Sequence[str]) -> None:
    if names:
        lock_work(tx)
        tx.execute(update(workers).where(workers.c.name.in_(names)).values(left=True))


def drop_lost(tx: Tx, names: Sequence[str]) -> None:
    """What these had need not be removed by them: they are not there. Should they return, they will be told."""
    for some in chunks(names):
        tx.execute(update(work).where(work.c.device.in_(some), work.c.over.is_(True)).values(device=None))
        tx.execute(delete(work).where(work.c.device.is_(None), work.c.over.is_(True), work.c.forgotten > 0))
        tx.execute(update(workers).where(workers.c.name.in_(some)).values(left=True))


def remove_workers(tx: Tx, names: Sequence[str]) -> None:
    for some in chunks(names):
        tx.execute(delete(workers).where(workers.c.name.in_(some)))
        tx.execute(delete(devices).where(devices.c.name.in_(some)))


def workers_of(tx: Tx, executor: str) -> list[KnownWorker]:
    """Returns the workers of an executor, those that have left included."""
    return [
        KnownWorker._make(row) for row in tx.execute(select(workers).where(workers.c.executor == executor))
    ]


def anything_for(
    tx: Tx, names: Iterable[str], executors: Iterable[str], heard: Mapping[str, Iterable[str]]
) -> bool:
    """Whether there is something to say to one of these workers. Cheap, for whoever asks often.

    `heard` are the attempts that know that they should give way, by the workers that can ask one to.
    """
    asked = or_(work.c.kill > 0, work.c.forgotten > 0)
    if heard:
        known = sorted({key for keys in heard.values() for key in keys})
        here = and_(is_in(tx, work.c.device, sorted(heard)), work.c.key.not_in(known))
        asked = or_(asked, and_(here, work.c.give_way.is_(True), work.c.over.is_(False)))
    mine = and_(is_in(tx, work.c.device, sorted(set(names))), asked)
    theirs = and_(work.c.executor.in_(sorted(set(executors))), WAITS)
    return tx.execute(select(work.c.seq).where(or_(mine, theirs)).limit(1)).first() is not None


# Placements. ------------------------------------------------------------------------------------------------


def add_placement(tx: Tx, executor: str, new: Placement) -> None:
    asked = new.resources
    values = {"vcpu": asked.vcpu, "memory_mb": asked.memory_mb, "gpus": asked.gpus, "count": new.count}
    tx.execute(
        insert(placements).values(
            name=new.name, executor=executor, time_s=new.time_s, made_at=tx.now, **values
        )
    )


def set_handle(tx: Tx, name: str, handle: str) -> None:
    tx.execute(update(placements).where(placements.c.name == name).values(handle=handle))


def remove_placements(tx: Tx, names: Sequence[str]) -> None:
    for some in chunks(names):
        tx.execute(delete(placements).where(placements.c.name.in_(some)))


def placements_of(tx: Tx, executor: str) -> list[Placement]:
    rows = tx.execute(select(placements).where(placements.c.executor == executor))
    return [
        Placement(
            row["name"],
            Resources(row["vcpu"], row["memory_mb"], row["gpus"]),
            row["count"],
            row["time_s"],
            row["handle"],
        )
        for row in rows.mappings()
    ]


def count_waiting(tx: Tx, executor: str) -> int:
    return int(tx.execute(select(func.count()).where(work.c.executor == executor, WAITS)).scalar_one())
