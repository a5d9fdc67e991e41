"""Live events over SSE, resumed by Last-Event-ID from the history itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from anyio import to_thread
from fastapi import Request
from fastapi.sse import ServerSentEvent

from easel.errors import EaselError
from easel.ids import ProjectId
from easel.records.event import Event
from easel.serve.access import Access
from easel.serve.parts import Parts
from easel.store.events import events_after
from easel.wire.event import Event as WireEvent

POLL_SECONDS = 1.0
"""Another process may have written; a commit of this one wakes us at once."""

RECHECK_EVERY = 30
"""Polls between two checks that the caller may still listen."""


async def follow(
    request: Request, here: Parts, access: Access, project_id: ProjectId | None, after: int
) -> AsyncIterator[ServerSentEvent]:
    """Every event of the project after `after`, in order, until the client leaves or loses its rights."""
    loop = asyncio.get_running_loop()
    changed = asyncio.Event()

    def wake() -> None:
        loop.call_soon_threadsafe(changed.set)

    stop_listening = here.store.listen(wake)
    try:
        polls = 0
        while not here.stopping.is_set():
            changed.clear()
            found = await to_thread.run_sync(_read, here, project_id, after)
            for event in found:
                after = event.seq
                yield ServerSentEvent(
                    data=WireEvent.model_validate(event), id=str(event.seq), event=event.kind
                )
            if found:
                continue
            polls += 1
            if polls % RECHECK_EVERY == 0:
                try:
                    await to_thread.run_sync(access.check, request)
                except EaselError:
                    return
            try:
                await asyncio.wait_for(changed.wait(), POLL_SECONDS)
            except TimeoutError:
                continue
    finally:
        stop_listening()


def _read(here: Parts, project_id: ProjectId | None, after: int) -> list[Event]:
    with here.store.read() as tx:
        return events_after(tx, project_id, after)
