"""`easel projects`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from easel.cli.connect import connect
from easel.cli.output import AsJson, Columns, InProject, say, show_list, show_one

if TYPE_CHECKING:
    from easel.wire.identity import Project

app = typer.Typer(no_args_is_help=True, help="Projects: list, create, archive, export, delete.")

COLUMNS: Columns[Project] = [
    ("name", lambda p: p.name),
    ("description", lambda p: p.description),
    ("created", lambda p: p.created_at),
    ("archived", lambda p: p.archived_at),
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


@app.command("archive")
def archive(name: str) -> None:
    """Close a project to new work: it can only be read, waiting jobs end. `easel projects reopen` undoes it."""
    with connect() as client:
        client.projects.change(name, archived=True)
    say(f"{name} is archived: it can be read, and opened again with `easel projects reopen {name}`")


@app.command("reopen")
def reopen(name: str) -> None:
    """Undo an archiving."""
    with connect() as client:
        client.projects.change(name, archived=False)
    say(f"{name} is open again")


@app.command("transfer")
def transfer(
    name: str, to: Annotated[str, typer.Argument(help="The member who answers for it from now on")]
) -> None:
    """Hand a project to another owner, who becomes one of its admins."""
    with connect() as client:
        client.projects.change(name, owner=to)
    say(f"{name} belongs to {to}")


@app.command("export")
def export(
    name: str, target: Annotated[Path | None, typer.Argument(help="A file; NAME.tar if none is given")] = None
) -> None:
    """Write all of a project to a tar archive: rows, file sets and bytes."""
    file = target or Path(f"{name}.tar")
    with connect() as client:
        size = client.projects.export(name, file)
    say(f"Wrote {file} ({size:,} bytes)")


@app.command("delete")
def delete(
    name: str,
    export_to: Annotated[
        Path | None, typer.Option("--export", help="Write an export to this file first")
    ] = None,
    without_export: Annotated[bool, typer.Option("--without-export", help="Nobody wants an export")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask")] = False,
) -> None:
    """Remove an archived project for good. It must have been exported since it was archived."""
    if not yes and typer.prompt(f"This cannot be undone. Type {name} to delete it") != name:
        raise typer.Abort
    with connect() as client:
        if export_to is not None:
            size = client.projects.export(name, export_to)
            say(f"Wrote {export_to} ({size:,} bytes)")
        client.projects.delete(name, without_export=without_export)
    say(f"{name} is gone")
