"""`easel apps report APP`: what matters, where the model fails, what would help."""

from __future__ import annotations

from typing import Annotated

import typer

from easel.cli.apps import AppName, app
from easel.cli.connect import connect
from easel.cli.output import AsJson, Columns, InProject, say, show_list, show_one
from easel.wire import app_report as wire

IMPORTANCE: Columns[wire.Importance] = [
    ("column", lambda one: one.column),
    ("less without it", lambda one: f"{one.drop:.4f} ± {one.deviation:.4f}"),
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
        job = client.apps.ask_report(name)
        if not wait:
            say(f"{job.id} looks into the model of {name}")
            return
        job.wait()
        found = client.apps.report(name)
        if as_json or found.findings is None:
            show_one(found, as_json)
            return
        print(f"{found.candidate} ({found.model}), {found.metric} {found.quality:.4f}")
        for sentence in found.findings.told:
            print(sentence)
        show_list(
            found.findings.importance, IMPORTANCE, as_json, "Its input is one thing: nothing to tell apart."
        )
