"""`easel learn DATA`: from a table or a folder of pictures to a first model, in one command."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from easel.cli.app_words import about_template, against_baseline, notes_of, score_of
from easel.cli.connect import connect
from easel.cli.output import AsJson, InProject, say, show_one
from easel.cli.program import look
from easel.declare.counted import counted
from easel.errors import Conflict, EaselError, InvalidInput, TryLater

if TYPE_CHECKING:
    from easel.sdk.client import Client
    from easel.wire.app import Fed

learn_app = typer.Typer()
PAUSE_S = 0.3


@learn_app.command()
def learn(
    data: Annotated[
        Path, typer.Argument(help="A CSV, xlsx or Parquet file, or a folder with one folder for each class")
    ],
    name: Annotated[
        str | None, typer.Option(help="What to call the app; otherwise as the data are called")
    ] = None,
    target: Annotated[str | None, typer.Option(help="The column to predict")] = None,
    metric: Annotated[str | None, typer.Option(help="Without it the task's usual one")] = None,
    patience: Annotated[float, typer.Option(help="Seconds to wait for the first model")] = 300.0,
    skip_bad: Annotated[
        bool,
        typer.Option("--skip-bad", help="Leave out rows that do not fit; those without an answer always are"),
    ] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Look at data, declare what to learn, feed it, and wait for the first model.

    Example: easel learn flowers.csv --target species
    """
    proposal = look(data, target)
    called = name or app_name(data)
    for reason in proposal.reasons:
        say(f"  {reason}")
    with connect(project) as client:
        try:
            made = client.apps.declare(called, str(proposal.program), metric=metric)
        except Conflict as error:
            rest = f"--name NAME makes another one; `easel feed {called} {data}` gives that one more examples"
            raise Conflict(f"{error.message.partition(':')[0]}: {rest}") from None
        say(f"{called}: {made.template}, measured by {made.metric}")
        if warning := about_template(made.template):
            say(warning)
        fed = feed_new(client, called, data, skip_bad=skip_bad or not proposal.fits_all)
        say(f"{counted(fed.new, 'example')} fed")
        for line in notes_of(fed):
            say(line)
        ends = time.monotonic() + patience
        while (found := client.apps.get(called)).serving is None or found.best is None:
            if found.lacks:
                raise InvalidInput(f"{called} cannot learn yet: it needs {found.lacks}")
            if time.monotonic() > ends:
                raise TryLater(f"{called} has no model after {patience:g} s: it {found.waiting}")
            time.sleep(PAUSE_S)
        if as_json:
            show_one(found, as_json)
            return
        known = against_baseline(found.best)
        say(
            f"First model: {found.best.candidate}, {made.metric} {score_of(found.best)}"
            + (f" ({known})" if known else "")
        )
        say(f"It goes on improving. Ask it: easel infer {called} FILE · watch it: easel open {called}")


def feed_new(client: Client, name: str, data: Path, *, skip_bad: bool = False) -> Fed:
    """Feeds the app that was just declared; one that cannot be fed is not left behind."""
    try:
        return client.apps.feed_path(name, str(data), skip_bad=skip_bad)
    except EaselError as error:
        if client.apps.get(name).examples == 0:
            client.apps.delete(name)
            rest = "; --skip-bad leaves out what does not fit" if isinstance(error, InvalidInput) else ""
            say(f"{name} was removed again: nothing could be fed{rest}")
        raise


def app_name(data: Path) -> str:
    """Returns a name for an app made from what its data are called: letters, digits, - and _."""
    made = re.sub(r"[^a-z0-9_-]+", "-", data.resolve().stem.lower()).strip("-_")
    if not made:
        raise InvalidInput(f"say what to call the app: --name NAME ({data.name} gives no name)")
    return made[:60]
