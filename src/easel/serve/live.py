"""Live events over SSE, resumed by Last-Event-ID from the history itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from anyio import to_thread
from fastapi import Request
from fastapi.sse import ServerSentEvent

from easel.errors import EaselError
from easel.flow.lake.visible import visible_events
from easel.records.event import Event
from easel.records.identity import Caller
from easel.serve.access import Access
from easel.serve.state import AppState
from easel.store.events import events_after
from easel.wire.event import Event as WireEvent

POLL_SECONDS = 1.0
"""Another process may have written; a commit of this one wakes us at once."""

RECHECK_SECONDS = 5.0
"""Between two checks that the caller may still listen."""


class StreamRights:
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
    request: Request, state: AppState, access: Access, caller: Caller | None, after: int
) -> AsyncIterator[ServerSentEvent]:
    """Every event of the caller's project (None: of all) after `after` that the caller may see, in order.

    Until the client leaves or loses its rights.
    """
    loop = asyncio.get_running_loop()
    changed = asyncio.Event()

    def wake() -> None:
        loop.call_soon_threadsafe(changed.set)

    stop_listening = state.store.listen(wake)
    try:
        rights = StreamRights(request, access)
        while not (state.stopping.is_set() or await rights.lost()):
            changed.clear()
            found, seen = await to_thread.run_sync(_read, state, caller, after)
            after = max(after, seen)
            for event in found:
                yield ServerSentEvent(
                    data=WireEvent.model_validate(event), id=str(event.seq), event=event.kind
                )
            if seen:
                continue
            try:
                await asyncio.wait_for(changed.wait(), POLL_SECONDS)
            except TimeoutError:
                continue
    finally:
        stop_listening()


def _read(state: AppState, caller: Caller | None, after: int) -> tuple[list[Event], int]:
    """Events to show, and the number of the last that there is (0: none)."""
    with state.store.read() as tx:
        if caller is None:
            found = events_after(tx, None, after)
            return found, found[-1].seq if found else 0
        found = events_after(tx, caller.project_id, after)
        return visible_events(tx, caller, found), found[-1].seq if found else 0
