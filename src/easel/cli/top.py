"""`easel jobs top`: what runs and what waits, drawn anew every few seconds; and bars of progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from easel.cli.output import say, show_list
from easel.cli.plain import Ago

if TYPE_CHECKING:
    from easel.cli.output import Columns
    from easel.sdk.client import Client
    from easel.wire import job as wire

ACTIVE = ("running", "uploading", "downloading", "launching", "queued")
"""In the order in which they are shown."""
WIDTH = 20


def bar(fraction: float, width: int = WIDTH) -> str:
    """Returns how much is done, as people see it: `######-------- 40 %`."""
    done = round(min(1.0, max(0.0, fraction)) * width)
    return f"{'#' * done}{'-' * (width - done)} {fraction:4.0%}".replace("%", " %")


def lasting(since: datetime | None) -> str | None:
    """Returns how long ago that was, as `1:02:03`."""
    if since is None:
        return None
    seconds = max(0, int((datetime.now(UTC) - since).total_seconds()))
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


TOP: Columns[wire.Job] = [
    ("id", lambda j: j.id),
    ("name", lambda j: j.name),
    ("state", lambda j: j.state),
    ("by", lambda j: j.user),
    ("progress", lambda j: None if j.progress is None else bar(j.progress)),
    ("runs for", lambda j: lasting(j.started_at)),
    ("device", lambda j: j.device),
    ("waits", lambda j: j.waiting),
    ("submitted", lambda j: Ago(j.submitted_at)),
]


def counts_told(states: Mapping[str, int]) -> str:
    """Returns how many jobs are in each state, those that are not over first."""
    order = [*ACTIVE, *sorted(set(states) - set(ACTIVE))]
    return ", ".join(f"{states[state]} {state}" for state in order if states.get(state)) or "no jobs"


def active(client: Client, limit: int) -> list[wire.Job]:
    """Returns the jobs that are not over: those that run first, each kind with the newest first."""
    found: list[wire.Job] = []
    for state in ACTIVE:
        more = (
            client.jobs.list(limit - len(found), filter=[f"state:eq:{state}"]) if len(found) < limit else ()
        )
        found += [job.about for job in more]
    return found


def watch(client: Client, every: float | None, limit: int, as_json: bool) -> None:
    """Shows it once, or anew every so many seconds until Ctrl-C."""
    for _ in _rounds(every):
        jobs = active(client, limit)
        if every is not None and sys.stdout.isatty():
            print("\x1b[2J\x1b[H", end="")
        if not as_json and every is not None:
            say(counts_told(client.jobs.counts().states))
        show_list(jobs, TOP, as_json, "Nothing runs and nothing waits.")


def _rounds(every: float | None) -> Iterator[None]:
    yield
    while every is not None:
        time.sleep(every)
        yield
