"""`easel projects`."""

from __future__ import annotations

from typing import Annotated

import typer

from easel.cli.connect import connect
from easel.cli.output import AsJson, Columns, InProject, say, show_list, show_one
from easel.wire.identity import Project

app = typer.Typer(no_args_is_help=True, help="List and create projects.")

COLUMNS: Columns[Project] = [
    ("name", lambda p: p.name),
    ("description", lambda p: p.description),
    ("created", lambda p: p.created_at),
]


@app.command("ls")
def ls(as_json: AsJson = False) -> None:
    """The projects that you may enter."""
    with connect() as client:
        show_list(client.projects.list(), COLUMNS, as_json, "You are in no project yet.")


@app.command("create")
def create(
    name: str, description: Annotated[str, typer.Option(help="What it is for")] = "", as_json: AsJson = False
) -> None:
    """Open a workspace (platform admins)."""
    with connect() as client:
        made = client.projects.create(name, description)
    say(f"Created project {made.name}")
    if as_json:
        show_one(made, as_json)


@app.command("limits")
def limits(
    max_weight: Annotated[float | None, typer.Option(help="The largest weight of an app or a study")] = None,
    max_budget: Annotated[float | None, typer.Option(help="The largest budget of an app or a study")] = None,
    none: Annotated[bool, typer.Option("--none", help="Take the limits away")] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """The most that members of a project may ask for their apps and studies; an admin sets it."""
    with connect(project) as client:
        found = client.term_limits()
        if none:
            found = client.set_term_limits()
        elif max_weight is not None or max_budget is not None:
            found = client.set_term_limits(
                found.max_weight if max_weight is None else max_weight,
                found.max_budget if max_budget is None else max_budget,
            )
        show_one(found, as_json)
