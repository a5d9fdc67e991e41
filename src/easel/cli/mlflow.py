"""`easel import mlflow` and `easel export mlflow`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from easel.cli.connect import connect
from easel.cli.output import AsJson, InProject, say
from easel.declare.counted import counted
from easel.sdk.mlflow.mlruns import MlrunsFolder
from easel.sdk.mlflow.move import MlflowMove, MoveSummary
from easel.sdk.mlflow.server import TrackingServer

if TYPE_CHECKING:
    from easel.sdk.client import Client

import_app = typer.Typer(no_args_is_help=True, help="Bring what other systems hold into a project.")
export_app = typer.Typer(no_args_is_help=True, help="Write what a project holds to other systems.")


@import_app.callback()
def _imports() -> None:
    """Bring what other systems hold into a project."""


@export_app.callback()
def _exports() -> None:
    """Write what a project holds to other systems."""


@import_app.command("mlflow")
def import_mlflow(
    source: Annotated[str, typer.Argument(help="http(s)://… of an MLflow server, or a folder mlruns/")],
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Bring experiments, runs, histories, files, logged and registered models. Repeating continues where it stopped."""
    with connect(project) as client:
        here = _here(client)
        there = TrackingServer(source) if "://" in source else MlrunsFolder(Path(source))
        _finish(_moved(MlflowMove(there, here)), as_json)


@export_app.command("mlflow")
def export_mlflow(
    target: Annotated[str, typer.Argument(help="http(s)://… of an MLflow server that serves artifacts")],
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Write the project's runs, their histories and files, logged and registered models to an MLflow server."""
    with connect(project) as client:
        _finish(_moved(MlflowMove(_here(client), TrackingServer(target))), as_json)


def _here(client: Client) -> TrackingServer:
    return TrackingServer(
        f"{client.server}/mlflow/{client.project}",
        client.connection.authorization.partition(" ")[2],
    )


def _moved(move: MlflowMove) -> MoveSummary:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, transient=True) as progress:
        task = progress.add_task("looking", total=None)
        move.told = lambda word: progress.update(task, description=word[:80])
        return move.everything()


def _finish(summary: MoveSummary, as_json: bool) -> None:
    if as_json:
        print(json.dumps(asdict(summary), indent=2))
    else:
        say(
            f"{counted(summary.runs, 'run')} with {counted(summary.points, 'point')} and "
            f"{counted(summary.files, 'file')} came (there already: {summary.there}), "
            f"of {counted(summary.experiments, 'new experiment')}; "
            f"{counted(summary.logged_models, 'logged model')}; {counted(summary.models, 'registered model')} "
            f"with {counted(summary.versions, 'version')}."
        )
        for each in summary.failed:
            say(f"not moved: {each}")
    if summary.failed:
        raise typer.Exit(1)
