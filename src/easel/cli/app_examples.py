"""`easel feed` and `easel refine`: an app's examples."""

from __future__ import annotations

import sys
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from easel.cli.app_words import AppName, notes_of
from easel.cli.connect import connect
from easel.cli.output import AsJson, Columns, InProject, say, show_list, show_one
from easel.declare.counted import counted
from easel.errors import InvalidInput
from easel.sdk.examples import json_pairs

if TYPE_CHECKING:
    from easel.sdk.client import Client
    from easel.wire import app as wire

feed_app = typer.Typer()
refine_app = typer.Typer()


class PictureFit(StrEnum):
    STRETCH = "stretch"
    PAD = "pad"
    CROP = "crop"


EXAMPLES: Columns[wire.FedExample] = [
    ("example", lambda e: e.digest),
    ("class", lambda e: e.answer if e.answer is not None else e.stratum),
    ("on", lambda e: e.on),
    ("fed", lambda e: e.fed_at),
    ("input", lambda e: e.preview),
]
SUSPECTS: Columns[wire.Suspicion] = [
    ("example", lambda s: s.example.digest),
    ("loss", lambda s: f"{s.loss:.3f}"),
    ("class", lambda s: s.example.answer),
    ("input", lambda s: s.example.preview),
]


@feed_app.command()
def feed(
    name: AppName,
    data: Annotated[
        str,
        typer.Argument(
            help="A CSV, JSON-lines, Parquet or npz file, a folder of pictures (one folder for each class) or "
            "with x.npy and y.npy; /path/ or /@set for what lies in the lake; - for JSON lines from a pipe"
        ),
    ],
    fit: Annotated[
        PictureFit, typer.Option(help="What to do with pictures of another size")
    ] = PictureFit.STRETCH,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out examples that do not fit, rather than refuse all")
    ] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Add pairs of examples. Feeding the same again adds nothing."""
    with connect(project) as client:
        if data == "-":
            fed = client.apps.feed(name, json_pairs(sys.stdin), skip_bad=skip_bad)
        elif data.startswith("/") and not Path(data).exists():
            fed = client.apps.feed_reference(name, data, fit=fit.value, skip_bad=skip_bad)
        else:
            fed = client.apps.feed_path(name, data, fit=fit.value, skip_bad=skip_bad)
        if as_json:
            show_one(fed, as_json)
            return
        say(f"{fed.new} new, {fed.known} known already, {fed.total} in all")
        for line in notes_of(fed):
            say(line)
        lacks = client.apps.get(name).lacks
        if lacks:
            say(f"before it can learn it needs {lacks}")


@refine_app.command()
def refine(
    name: AppName,
    digests: Annotated[
        list[str] | None, typer.Argument(help="Examples to switch; without any they are listed")
    ] = None,
    on: Annotated[bool | None, typer.Option("--on/--off", help="Switch on or off")] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(help="Only those, e.g. class:eq:cat, on:eq:false, preview:contains:blurred"),
    ] = None,
    suspects: Annotated[
        bool,
        typer.Option("--suspects", help="Most likely mislabelled first; with --off N worst are switched"),
    ] = False,
    judge: Annotated[bool, typer.Option("--judge", help="Judge every example first (starts a job)")] = False,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="At most so many; without it 20 suspects, or all that --where finds"),
    ] = None,
    check: Annotated[
        str | None,
        typer.Option(
            help="Those that a check found: outliers, labels, near-duplicates, contradictions, missing"
        ),
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Take back the newest switch")] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Browse all examples ever fed; switch them off and on, singly, by query or by suspicion."""
    with connect(project) as client:
        if undo:
            say(f"{counted(len(client.apps.undo(name)), 'example')} switched back")
            return
        if check is not None:
            digests = found_by(client, name, check)[:limit]
            if on is None or not digests:
                wanted = set(digests)
                listed = (one for one in client.apps.examples(name) if one.digest in wanted)
                show_list(listed, EXAMPLES, as_json, f"The check found no examples: easel checks {name}")
                return
        if judge:
            client.jobs.get(client.apps.judge(name)).wait()
        if suspects or judge:
            found = client.apps.suspects(name, limit or 20).items
            if on is None:
                show_list(found, SUSPECTS, as_json, "Nothing was judged yet: wait for a model, or --judge.")
                return
            digests = [one.example.digest for one in found]
        filters = where or []
        matching = client.apps.examples(name, *filters)
        if filters and limit and on is not None and not digests:
            digests, filters = [one.digest for one in islice(matching, limit)], []
        if digests or (where and on is not None):
            changed = client.apps.refine(name, digests or [], filters=filters, on=bool(on))
            say(f"{counted(len(changed), 'example')} switched {'on' if on else 'off'}")
            return
        if on is not None:
            raise InvalidInput("which examples? Name some, or use --where or --suspects")
        show_list(islice(matching, limit), EXAMPLES, as_json, "There are no such examples.")


def found_by(client: Client, name: str, kind: str) -> list[str]:
    """The examples that a check of this kind found; the checks are made first, if they were not."""
    client.apps.ask_checks(name).wait()
    found = client.apps.checks(name).checks
    return list(dict.fromkeys(digest for one in found if one.kind == kind for digest in one.digests))
