"""The events of a project, or of the whole platform."""

from __future__ import annotations

import re
from collections.abc import Sequence

from easel.declare.page import PageRequest
from easel.flow.lake.visible import visible_events
from easel.records.event import Event
from easel.records.identity import Caller
from easel.store import apps, jobs, studies
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


_NAMED = re.compile(r"(job|app|stu)_[0-9a-hjkmnp-tv-z]{26}")
_STORES = {"job": jobs.names_of, "app": apps.names_of, "stu": studies.names_of}


def subject_names(tx: Tx, events: Sequence[Event]) -> dict[str, str]:
    """Returns what people call the subjects of events: the name of a job, an app or a study in place of its id."""
    found = {event.subject: hit for event in events if (hit := _NAMED.search(event.subject))}
    names: dict[str, str] = {}
    for kind, names_of in _STORES.items():
        names |= names_of(tx, [hit.group() for hit in found.values() if hit.group(1) == kind])
    return {
        subject: subject.replace(hit.group(), names[hit.group()])
        for subject, hit in found.items()
        if hit.group() in names
    }
