"""`easel notes`: what people wrote about jobs, models and files."""

from __future__ import annotations

from typing import Annotated

import typer

from easel.cli.connect import connect
from easel.cli.output import AsJson, Columns, InProject, say, show_list, show_one
from easel.sdk.lake import KindName
from easel.wire.lake import ArtifactNote

app = typer.Typer(no_args_is_help=True, help="What people wrote about jobs, models and files.")

COLUMNS: Columns[ArtifactNote] = [
    ("at", lambda note: note.written_at),
    ("by", lambda note: note.user),
    ("note", lambda note: note.text),
    ("id", lambda note: note.id),
]
Ref = Annotated[
    str,
    typer.Argument(
        help="A job (the end of its id will do), a model or file set (digits-model:6), or /a/file"
    ),
]


def kind_of(ref: str) -> KindName:
    """Returns what a reference names: `/…` a file, `name:version` a file set, anything else a job."""
    if ref.startswith("/"):
        return "file"
    return "fileset" if ":" in ref else "job"


@app.command("ls")
def ls(ref: Ref, project: InProject = None, as_json: AsJson = False) -> None:
    """The notes on a job, a model or a file, oldest first."""
    with connect(project) as client:
        nothing = f'No notes yet: easel notes add {ref} "what you saw"'
        show_list(client.lake.notes(kind_of(ref), ref), COLUMNS, as_json, nothing)


@app.command("add")
def add(
    ref: Ref,
    text: Annotated[list[str], typer.Argument(help="What to note")],
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Write a note: easel notes add digits-model:6 "the first to beat the old one"."""
    with connect(project) as client:
        made = client.lake.write_note(kind_of(ref), ref, " ".join(text))
        if as_json:
            show_one(made, as_json)
        else:
            say(f"Noted on {ref}.")


@app.command("rm")
def rm(
    ref: Ref,
    note: Annotated[str, typer.Argument(metavar="NOTE", help="The note's id, as `ls` shows it")],
    project: InProject = None,
) -> None:
    """Remove a note: your own, or as an admin of the project anybody's."""
    with connect(project) as client:
        client.lake.remove_note(kind_of(ref), ref, note)
