"""`easel events`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from easel.cli.connect import connect
from easel.cli.output import AsJson, Columns, InProject, show_list
from easel.cli.plain import plain

if TYPE_CHECKING:
    from easel.wire.event import Event

app = typer.Typer()
_ID = re.compile(r"[a-z]{3,4}_[0-9a-z]{26}")

COLUMNS: Columns[Event] = [
    ("seq", lambda e: e.seq),
    ("at", lambda e: e.at),
    ("kind", lambda e: e.kind),
    ("subject", lambda e: called(e)),
    ("what", lambda e: what_told(e)),
    ("id", lambda e: e.subject if called(e) != e.subject else None),
]


def called(event: Event) -> str:
    """Returns the name of what it happened to, its id where none is known."""
    return event.subject_name or str(event.body.get("name") or event.subject)


def what_told(event: Event) -> str:
    """Returns what else is known of it, without its name again and without ids of others; `--json` has them."""
    name = called(event)
    return plain({k: v for k, v in event.body.items() if v != name and not _ID.fullmatch(str(v))})


@app.command()
def events(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on showing what happens")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many")] = 30,
    everywhere: Annotated[bool, typer.Option(help="All projects (platform admins)")] = False,
    filters: Annotated[list[str] | None, typer.Option("--filter", help="e.g. kind:eq:user.created")] = None,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """What happened, newest last; with -f what happens now."""
    with connect(project) as client:
        found = list(reversed(client.events.list(limit, filters, everywhere)))
        if not follow:
            show_list(found, COLUMNS, as_json, "Nothing has happened yet.")
            return
        last = found[-1].seq if found else 0
        for event in found:
            _line(event, as_json)
        for event in client.events.follow(last, everywhere):
            _line(event, as_json)


def _line(event: Event, as_json: bool) -> None:
    if as_json:
        print(event.model_dump_json(), flush=True)
    else:
        at = event.at.astimezone().strftime("%H:%M:%S")
        print(f"{at} {event.kind} {called(event)} {what_told(event)}", flush=True)
