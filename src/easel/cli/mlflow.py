"""`easel import mlflow` and `easel export mlflow`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.filesize import decimal
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from easel.cli.connect import connect
from easel.cli.output import AsJson, InProject, errors, say
from easel.declare.counted import counted
from easel.sdk.mlflow.http import same_server
from easel.sdk.mlflow.mlruns import MlrunsFolder
from easel.sdk.mlflow.move import MlflowMove
from easel.sdk.mlflow.server import TrackingServer
from easel.sdk.mlflow.transfer import MoveStep, MoveSummary

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
        there = _other(client, source) if "://" in source else MlrunsFolder(Path(source))
        _finish(_moved(MlflowMove(there, here)), as_json)


@export_app.command("mlflow")
def export_mlflow(
    target: Annotated[str, typer.Argument(help="http(s)://… of an MLflow server that serves artifacts")],
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Write the project's runs, their histories and files, logged and registered models to an MLflow server."""
    with connect(project) as client:
        _finish(_moved(MlflowMove(_here(client), _other(client, target))), as_json)


def _here(client: Client) -> TrackingServer:
    return TrackingServer(f"{client.server}/mlflow/{client.project}", _token(client))


def _other(client: Client, address: str) -> TrackingServer:
    """Our own token opens other projects of our own server, and is sent to no other."""
    ours = same_server(address, client.server) and "@" not in address
    return TrackingServer(address, _token(client) if ours else None)


def _token(client: Client) -> str:
    return client.connection.authorization.partition(" ")[2]


def _moved(move: MlflowMove) -> MoveSummary:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[size]}"),
        TimeRemainingColumn(),
    )
    shown = errors().is_terminal
    with Progress(*columns, console=errors(), disable=not shown, transient=True) as progress:
        task = progress.add_task("", total=None, size="")

        def told(step: MoveStep) -> None:
            size = decimal(step.bytes) if step.bytes else ""
            progress.update(
                task, description=step.word[:40], completed=step.done, total=step.total or None, size=size
            )

        move.told = told
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
        if summary.open:
            still = counted(len(summary.open), "run")
            say(f"{still} had not ended: repeat the command to bring what they log after this.")
        for each in summary.failed:
            say(f"not moved: {each}")
    if summary.failed:
        raise typer.Exit(1)
