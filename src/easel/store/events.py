"""Reading the history in the order in which it happened."""

from __future__ import annotations

from collections.abc import Collection as Group
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Select, bindparam, func, select

from easel.declare.page import PageRequest
from easel.ids import ProjectId
from easel.records.event import Event
from easel.store.engine import Tx
from easel.store.paging import Collection, Page, fetch
from easel.store.schema.events import events
from easel.store.upsert import chunks, in_slots, slot_values, slots_for

EVENTS = Collection(
    {"seq": events.c.seq, "at": events.c.at, "kind": events.c.kind, "subject": events.c.subject},
    "seq",
    "-seq",
)
_EVENT = (
    events.c.seq,
    events.c.at,
    events.c.kind,
    events.c.subject,
    events.c.project_id,
    events.c.actor,
    events.c.body,
)


def list_events(tx: Tx, project_id: ProjectId | None, request: PageRequest) -> Page[Event]:
    """A project's events; with None everything, which only a platform admin may see."""
    query = select(*_EVENT)
    if project_id is not None:
        query = query.where(events.c.project_id == project_id)
    return fetch(tx, query, EVENTS, request).map(lambda row: Event(*row))


# Whoever follows the history asks this at every event: it is built once.
_AFTER = (
    select(*_EVENT).where(events.c.seq > bindparam("seen")).order_by(events.c.seq).limit(bindparam("at_most"))
)
_AFTER_OF = _AFTER.where(events.c.project_id == bindparam("of_project"))


def events_after(tx: Tx, project_id: ProjectId | None, seq: int, limit: int = 200) -> list[Event]:
    asked: dict[str, Any] = {"seen": seq, "at_most": limit}
    if project_id is None:
        return [Event(*row) for row in tx.execute(_AFTER, asked)]
    return [Event(*row) for row in tx.execute(_AFTER_OF, {**asked, "of_project": project_id})]


def last_seq(tx: Tx) -> int:
    return int(tx.execute(select(func.coalesce(func.max(events.c.seq), 0))).scalar_one())


def newest_at(tx: Tx) -> datetime | None:
    """Returns when the latest of the newest events happened, as its writer's clock said."""
    last = select(events.c.at).order_by(events.c.seq.desc()).limit(100).subquery()
    found: datetime | None = tx.execute(select(func.max(last.c.at))).scalar_one()
    return found


@cache
def _newest_of(subjects: int, kinds: int) -> Select[*tuple[Any, ...]]:
    of = (in_slots(events.c.subject, "subject", subjects), in_slots(events.c.kind, "kind", kinds))
    query = select(events.c.subject, func.max(events.c.seq), events.c.kind).where(*of)
    return query.group_by(events.c.subject, events.c.kind)


def newest_of_kinds(tx: Tx, subjects: Group[str], kinds: Group[str]) -> dict[str, str]:
    """Returns for each subject which of these kinds its last event had."""
    found: dict[str, tuple[int, str]] = {}
    for some in chunks(sorted(subjects)):
        wide, high = slots_for(some), slots_for(told := sorted(kinds))
        asked = {**slot_values("subject", some, wide), **slot_values("kind", told, high)}
        for subject, seq, kind in tx.execute(_newest_of(wide, high), asked):
            found[subject] = max(found.get(subject, (0, "")), (seq, kind))
    return {subject: kind for subject, (_, kind) in found.items()}


def newest(tx: Tx, project_id: ProjectId, kind: str, subjects: Sequence[str]) -> Event | None:
    """The last event of a kind about one of these subjects of a project."""
    query = select(*_EVENT).where(
        events.c.subject.in_(subjects), events.c.kind == kind, events.c.project_id == project_id
    )
    row = tx.execute(query.order_by(events.c.seq.desc()).limit(1)).first()
    return None if row is None else Event(*row)
