"""The events of a project, or of the whole platform."""

from __future__ import annotations

from easel.declare.page import PageRequest
from easel.flow.lake.visible import visible_events
from easel.records.event import Event
from easel.records.identity import Caller
from easel.store.engine import Tx
from easel.store.events import list_events
from easel.store.paging import Page


def of_project(tx: Tx, caller: Caller, page: PageRequest) -> Page[Event]:
    """Returns what happened in the caller's project, newest first, without what a grant hides from them."""
    found = list_events(tx, caller.project_id, page)
    return Page(visible_events(tx, caller, found.items), found.next_cursor)


def of_platform(tx: Tx, page: PageRequest) -> Page[Event]:
    """Returns what happened anywhere, newest first. For platform admins."""
    return list_events(tx, None, page)
