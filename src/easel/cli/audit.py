"""`easel audit`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from easel.cli.connect import connect
from easel.cli.output import AsJson, Columns, InProject, say, show_list, show_one, warn
from easel.declare.counted import counted
from easel.errors import InvalidInput

if TYPE_CHECKING:
    from easel.wire.audit import AuditEntry

app = typer.Typer(no_args_is_help=True, help="Who did what: search, export, verify.")

COLUMNS: Columns[AuditEntry] = [
    ("seq", lambda e: e.seq),
    ("at", lambda e: e.at),
    ("who", lambda e: e.actor_name or "nobody"),
    ("from", lambda e: e.address),
    ("what", lambda e: f"{e.method} {e.path}"),
    ("outcome", lambda e: f"{e.outcome} {e.status}"),
    ("times", lambda e: e.count),
]


@app.command("ls")
def ls(
    who: Annotated[str | None, typer.Option(help="A user's name")] = None,
    outcome: Annotated[str | None, typer.Option(help="allowed, refused, failed or unanswered")] = None,
    path: Annotated[str | None, typer.Option(help="Part of the address")] = None,
    hours: Annotated[float | None, typer.Option(min=0, help="Only the last so many hours")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many")] = 50,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """What was done, newest first: everywhere (platform admins), or with --project in one project."""
    filters = [
        f"{name}:{value}" for name, value in (("actor_name:eq", who), ("outcome:eq", outcome)) if value
    ]
    filters += [f"path:contains:{path}"] if path else []
    if hours is not None:
        filters.append(f"at:ge:{(datetime.now(UTC) - timedelta(hours=hours)).isoformat()}")
    with connect(project) as client:
        found = islice(client.audit.list(filters, everywhere=project is None), limit)
        show_list(found, COLUMNS, as_json, "Nothing was found.")


@app.command("export")
def export(
    target: Path, after: Annotated[int, typer.Option(min=0, help="Only entries after this number")] = 0
) -> None:
    """Write the audit to a file of JSON lines."""
    with connect() as client:
        size = client.audit.export(target, after)
    say(f"Wrote {target} ({size:,} bytes)")


@app.command("verify")
def verify(
    file: Annotated[Path | None, typer.Option(help="Check this export rather than the server")] = None,
    seq: Annotated[int | None, typer.Option(help="Number of an entry that you noted elsewhere")] = None,
    known_hash: Annotated[str | None, typer.Option("--hash", help="Its hash")] = None,
    as_json: AsJson = False,
) -> None:
    """Check that no entry was changed, removed or put in; exit code 1 if one was."""
    if file is not None:
        _verify_file(file)
        return
    with connect() as client:
        found = client.audit.verify(seq, known_hash)
    if as_json:
        show_one(found, as_json)
    elif found.whole:
        say(
            f"Whole: {counted(found.entries, 'entry')}, {found.first} to {found.last}. The last hash is {found.hash}"
        )
    else:
        warn(f"entry {found.broken_at}: {found.why}")
    if not found.whole:
        raise typer.Exit(1)


def _verify_file(file: Path) -> None:
    """An export is checked without a server: anybody can."""
    from easel.records.audit import FIRST_HASH, AuditOutcome, ChainedEntry, link
    from easel.records.audit import AuditEntry as Entry

    def read() -> Iterator[ChainedEntry]:
        with file.open() as lines:
            for line in lines:
                fields = json.loads(line)
                seq, digest = fields.pop("seq"), fields.pop("hash")
                moment = datetime.fromisoformat(fields["at"])
                entry = Entry(**{**fields, "at": moment, "outcome": AuditOutcome(fields["outcome"])})
                yield ChainedEntry(seq, entry, digest)

    last: ChainedEntry | None = None
    count = 0
    for each in read():
        before = FIRST_HASH if last is None else last.hash
        follows = last is None or each.seq == last.seq + 1
        # The first line of an export that does not begin at 1 has nothing before it to check against.
        fits = link(before, each.seq, each.entry) == each.hash or (last is None and each.seq > 1)
        if not (follows and fits):
            warn(f"entry {each.seq} does not fit the one before")
            raise typer.Exit(1)
        last, count = each, count + 1
    if last is None:
        raise InvalidInput(f"{file} holds no entries")
    say(f"Whole: {counted(count, 'entry')} up to {last.seq}. The last hash is {last.hash}")
