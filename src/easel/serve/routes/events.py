"""The history: in pages, and live."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Annotated

from fastapi import Header, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from easel.flow import history
from easel.flow.members import names_of
from easel.records import event as records
from easel.serve import access
from easel.serve.access import Member, PlatformAdmin, State
from easel.serve.live import follow
from easel.serve.paging import Paging
from easel.serve.router import Router
from easel.serve.state import Tx
from easel.wire.event import Event
from easel.wire.model import Page

router = Router(prefix="/api/v1", tags=["events"])

After = Annotated[int, Query(ge=0, lt=2**63, description="Begin after this event's seq")]
LastEventId = Annotated[
    int | None, Header(alias="Last-Event-ID", ge=0, lt=2**63, description="Where the stream broke off")
]


@router.get("/projects/{project}/events", response_model=Page[Event])
def project_events(state: State, caller: Member, page: Paging) -> Page[Event]:
    """What happened in this project, newest first."""
    with state.store.read() as tx:
        found = history.of_project(tx, caller, page)
        items = _named(tx, found.items)
    return Page(items=items, next_cursor=found.next_cursor)


@router.get("/events", response_model=Page[Event])
def platform_events(state: State, caller: PlatformAdmin, page: Paging) -> Page[Event]:
    """What happened anywhere, newest first."""
    with state.store.read() as tx:
        found = history.of_platform(tx, page)
        items = _named(tx, found.items)
    return Page(items=items, next_cursor=found.next_cursor)


def _named(tx: Tx, events: Sequence[records.Event]) -> list[Event]:
    """Returns events with the names of the job they are about and of whoever did it, also of somebody who left."""
    names = names_of(tx, [each.actor for each in events if each.actor])
    subjects = history.subject_names(tx, events)
    return [
        Event.model_validate(each).model_copy(
            update={"actor_name": names.get(each.actor or ""), "subject_name": subjects.get(each.subject)}
        )
        for each in events
    ]


@router.get("/projects/{project}/events/stream", response_class=EventSourceResponse)
async def project_stream(
    request: Request, state: State, caller: Member, after: After = 0, last_event_id: LastEventId = None
) -> AsyncIterator[ServerSentEvent]:
    """This project's events as they happen (server-sent events); resume with Last-Event-ID."""
    start = after if last_event_id is None else last_event_id
    async for event in follow(request, state, access.member, caller, start):
        yield event


@router.get("/events/stream", response_class=EventSourceResponse)
async def platform_stream(
    request: Request, state: State, caller: PlatformAdmin, after: After = 0, last_event_id: LastEventId = None
) -> AsyncIterator[ServerSentEvent]:
    """All events as they happen (server-sent events); resume with Last-Event-ID."""
    start = after if last_event_id is None else last_event_id
    async for event in follow(request, state, access.platform_admin, None, start):
        yield event
