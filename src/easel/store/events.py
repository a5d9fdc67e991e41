"""Reading the history in the order in which it happened."""

from __future__ import annotations

from collections.abc import Collection as Group
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import func, select

from easel.declare.page import PageRequest
from easel.ids import ProjectId
from easel.records.event import Event
from easel.store.engine import Tx
from easel.store.paging import Collection, Page, fetch
from easel.store.schema.events import events
from easel.store.upsert import chunks

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


def events_after(tx: Tx, project_id: ProjectId | None, seq: int, limit: int = 200) -> list[Event]:
    query = select(*_EVENT).where(events.c.seq > seq).order_by(events.c.seq).limit(limit)
    if project_id is not None:
        query = query.where(events.c.project_id == project_id)
    return [Event(*row) for row in tx.execute(query)]


def last_seq(tx: Tx) -> int:
    return int(tx.execute(select(func.coalesce(func.max(events.c.seq), 0))).scalar_one())


def newest_at(tx: Tx) -> datetime | None:
    """Returns when the latest of the newest events happened, as its writer's clock said."""
    last = select(events.c.at).order_by(events.c.seq.desc()).limit(100).subquery()
    found: datetime | None = tx.execute(select(func.max(last.c.at))).scalar_one()
    return found


def newest_of_kinds(tx: Tx, subjects: Group[str], kinds: Group[str]) -> dict[str, str]:
    """Returns for each subject which of these kinds its last event had."""
    found: dict[str, tuple[int, str]] = {}
    for some in chunks(sorted(subjects)):
        query = select(events.c.subject, func.max(events.c.seq), events.c.kind).where(
            events.c.subject.in_(some), events.c.kind.in_(kinds)
        )
        for subject, seq, kind in tx.execute(query.group_by(events.c.subject, events.c.kind)):
            found[subject] = max(found.get(subject, (0, "")), (seq, kind))
    return {subject: kind for subject, (_, kind) in found.items()}


def newest(tx: Tx, project_id: ProjectId, kind: str, subjects: Sequence[str]) -> Event | None:
    """The last event of a kind about one of these subjects of a project."""
    query = select(*_EVENT).where(
        events.c.subject.in_(subjects), events.c.kind == kind, events.c.project_id == project_id
    )
    row = tx.execute(query.order_by(events.c.seq.desc()).limit(1)).first()
    return None if row is None else Event(*row)
