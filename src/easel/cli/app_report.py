"""`easel apps report APP` and `easel card APP`: what matters, where the model fails, what would help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from easel.cli.app_models import app
from easel.cli.app_words import AppName
from easel.cli.connect import connect
from easel.cli.output import AsJson, Columns, InProject, say, show_list, show_one, show_text
from easel.declare.counted import counted
from easel.errors import InvalidInput

if TYPE_CHECKING:
    from easel.wire import app_report as wire

LOOKS = "A job looks into the model of {}, if none did yet: about a minute where the pool is free."
card_app = typer.Typer()
checks_app = typer.Typer()
IMPORTANCE: Columns[wire.Importance] = [
    ("column", lambda one: one.column),
    ("less without it", lambda one: f"{one.drop:.4f} ± {one.deviation:.4f}"),
]


CONTRIBUTIONS: Columns[wire.Contribution] = [
    ("column", lambda one: one.column),
    ("moves answers by", lambda one: f"{one.mean:.4f}"),
    ("larger numbers", lambda one: None if one.direction is None else f"{one.direction:+.2f}"),
]


CHECKS: Columns[wire.ExampleCheck] = [
    ("check", lambda one: one.kind),
    ("examples", lambda one: one.count or None),
    ("what was found", lambda one: one.told),
]


@app.command("report")
def report(
    name: AppName,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it is made")] = True,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """What matters, where the model fails, how sure it is and what would help; made by a job, kept for each model."""
    with connect(project) as client:
        if not wait:
            say(f"{client.apps.ask_report(name).id} looks into the model of {name}")
            return
        say(LOOKS.format(name))
        found = client.apps.make_report(name)
        if as_json or found.findings is None:
            show_one(found, as_json)
            return
        show_text(f"{found.candidate} ({found.model}), {found.metric} {found.quality:.4f}")
        for sentence in found.findings.told:
            show_text(sentence)
        show_list(
            found.findings.importance, IMPORTANCE, as_json, "Its input is one thing: nothing to tell apart."
        )
        if found.findings.contributions:
            print(f"\nExact Shapley values, {found.findings.contributions_of}:")
            show_list(found.findings.contributions, CONTRIBUTIONS, as_json, "")


@card_app.command()
def card(
    name: AppName,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="card.md or card.html; without it Markdown is printed"),
    ] = None,
    look: Annotated[
        bool, typer.Option("--report/--no-report", help="Look into the model first, if that was not done")
    ] = True,
    project: InProject = None,
) -> None:
    """A page about the model, to hand to a colleague: what it does, how good it is, where it fails.

    Example: easel card shop -o card.html
    """
    kinds = {".md": "md", ".html": "html", ".htm": "html"}
    form = "md" if output is None else kinds.get(output.suffix.lower())
    if form is None:
        raise InvalidInput(f"{output}: a card is written as .md or .html")
    with connect(project) as client:
        if look:
            say(f"{LOOKS.format(name)} --no-report: without it.")
            client.apps.make_report(name)
        text = client.apps.card(name, "html" if form == "html" else "md")
    if output is None:
        print(text, end="")
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text, encoding="utf-8")
    say(str(output))


@checks_app.command()
def checks(name: AppName, project: InProject = None, as_json: AsJson = False) -> None:
    """What is odd about an app's examples: wrong labels, outliers, near-duplicates, drift, leaks, gaps, rare classes.

    Example: easel checks shop, then easel refine shop --check outliers --off
    """
    with connect(project) as client:
        say(f"A job looks through the examples of {name}, if none did since they changed.")
        client.apps.ask_checks(name).wait()
        found = client.apps.checks(name)
        if as_json:
            show_one(found, as_json)
            return
        show_list(found.checks, CHECKS, as_json, f"Nothing odd in {counted(found.examples or 0, 'example')}.")
        for note in found.notes:
            say(f"note: {note}")
