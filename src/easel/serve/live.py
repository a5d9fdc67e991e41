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

RECHECK_SECONDS = 5.0
"""Between two checks that the caller may still listen."""


class Rights:
    """Whether the caller of a stream still has the rights it began with: tokens are revoked, members leave."""

    def __init__(self, request: Request, access: Access) -> None:
        self._request, self._access = request, access
        self._due = asyncio.get_running_loop().time() + RECHECK_SECONDS

    async def lost(self) -> bool:
        now = asyncio.get_running_loop().time()
        if now < self._due:
            return False
        self._due = now + RECHECK_SECONDS
        try:
            await to_thread.run_sync(self._access.check, self._request)
        except EaselError:
            return True
        return False


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
        rights = Rights(request, access)
        while not (here.stopping.is_set() or await rights.lost()):
            changed.clear()
            found = await to_thread.run_sync(_read, here, project_id, after)
            for event in found:
                after = event.seq
                yield ServerSentEvent(
                    data=WireEvent.model_validate(event), id=str(event.seq), event=event.kind
                )
            if found:
                continue
            try:
                await asyncio.wait_for(changed.wait(), POLL_SECONDS)
            except TimeoutError:
                continue
    finally:
        stop_listening()


def _read(here: Parts, project_id: ProjectId | None, after: int) -> list[Event]:
    with here.store.read() as tx:
        return events_after(tx, project_id, after)
