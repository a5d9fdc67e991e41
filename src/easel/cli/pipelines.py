"""`easel pipelines`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from easel.cli.connect import connect
from easel.cli.output import AsJson, Columns, InProject, say, show_list, show_one
from easel.cli.run import read_yaml
from easel.declare.counted import counted
from easel.errors import InvalidInput

if TYPE_CHECKING:
    from easel.wire import pipeline as wire

app = typer.Typer(no_args_is_help=True, help="Dependent jobs submitted as one.")

COLUMNS: Columns[wire.Pipeline] = [
    ("id", lambda p: p.id),
    ("name", lambda p: p.name),
    ("state", lambda p: p.state),
    ("steps", lambda p: len(p.steps)),
    ("reused", lambda p: sum(step.reused for step in p.steps)),
    ("created", lambda p: p.created_at),
]
STEPS: Columns[wire.PipelineStep] = [
    ("step", lambda s: s.name),
    ("needs", lambda s: ", ".join(s.needs)),
    ("state", lambda s: f"{s.state} (reused)" if s.reused else s.state),
    ("job", lambda s: s.job_id),
    ("output", lambda s: s.output_set),
    ("reason", lambda s: s.reason),
]
Detach = Annotated[bool, typer.Option("--detach", "-d", help="Do not wait for the end")]
Fresh = Annotated[bool, typer.Option("--no-reuse", help="Run every step, known or not")]


@app.command("run")
def run(
    file: Annotated[Path, typer.Argument(help="A YAML file with `name` and `steps`")],
    fresh: Fresh = False,
    detach: Detach = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Submit a pipeline and wait for its end."""
    fields = read_yaml(file)
    steps = fields.get("steps")
    if not isinstance(steps, dict):
        raise InvalidInput(f"{file} needs `steps:`, each a name with the fields of a job")
    from easel.wire.job import job_fields

    wanted = []
    for name, step in steps.items():
        body = job_fields(dict(step))
        needs = body.pop("needs", [])
        wanted.append({"name": name, "job": {"name": name, **body}, "needs": needs})
    with connect(project) as client:
        made = client.pipelines.submit(fields.get("name", file.stem), wanted, reuse=not fresh)
        reused = sum(step.reused for step in made.steps)
        say(f"Pipeline {made.id}: {reused} of {counted(len(made.steps), 'step')} reused")
        if not detach:
            made = client.pipelines.wait(made.id, check=False)
    _show(made, as_json)
    if made.state == "failed":
        raise typer.Exit(1)


@app.command("ls")
def ls(project: InProject = None, as_json: AsJson = False) -> None:
    """The project's pipelines, newest first."""
    with connect(project) as client:
        show_list(list(client.pipelines.list()), COLUMNS, as_json, "No pipelines yet.")


@app.command("show")
def show(pipeline: str, project: InProject = None, as_json: AsJson = False) -> None:
    """One pipeline, step by step."""
    with connect(project) as client:
        _show(client.pipelines.get(pipeline), as_json)


@app.command("rerun")
def rerun(
    pipeline: str,
    inputs: Annotated[
        list[str] | None, typer.Option("--input", help="STEP=FILESET: another input, repeatable")
    ] = None,
    fresh: Fresh = False,
    detach: Detach = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Run again what changed upstream and wait for its end; the rest is reused."""
    pairs = dict(text.split("=", 1) for text in inputs or [] if "=" in text)
    with connect(project) as client:
        made = client.pipelines.rerun(pipeline, pairs, reuse=not fresh)
        if not detach:
            made = client.pipelines.wait(made.id, check=False)
    _show(made, as_json)
    if made.state == "failed":
        raise typer.Exit(1)


def _show(found: wire.Pipeline, as_json: bool) -> None:
    if as_json:
        show_one(found, as_json)
        return
    say(f"{found.name} {found.id}: {found.state}")
    show_list(found.steps, STEPS, as_json, "No steps.")
