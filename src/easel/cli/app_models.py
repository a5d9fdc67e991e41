"""`easel apps pin`, `unpin`, `rollback`, `export`: which model answers, and taking it along."""

from __future__ import annotations

import io
import zipfile
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from easel.cli.app_words import AppName
from easel.cli.apps import app as app
from easel.cli.connect import connect
from easel.cli.output import AsJson, InProject, say, show_one


class ModelFormat(StrEnum):
    AUTO = "auto"
    ONNX = "onnx"
    NATIVE = "native"


@app.command("pin")
def pin(name: AppName, model: str, project: InProject = None) -> None:
    """Let this model (NAME-model:3) answer, whatever is found."""
    with connect(project) as client:
        client.apps.pin(name, model)
        say(f"{model} answers from now on")


@app.command("unpin")
def unpin(name: AppName, project: InProject = None) -> None:
    """Let the best model so far answer again."""
    with connect(project) as client:
        found = client.apps.unpin(name).serving
        say("the best model answers again" + (f": {found.candidate}" if found else ""))


@app.command("rollback")
def rollback(
    name: AppName,
    forward: Annotated[
        bool, typer.Option("--forward", help="To the model after the present one again")
    ] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Let the model answer that answered before the present one; --forward goes the other way."""
    with connect(project) as client:
        found = client.apps.rollback(name, forward=forward)
        if as_json:
            show_one(found, as_json)
        elif found.serving is not None:
            kept = "" if found.pinned else ", and every better one after it"
            say(f"{found.serving.model} ({found.serving.candidate}) answers from now on{kept}")


def form_of(packed: bytes) -> ModelFormat:
    """Returns the form of the model in an exported archive."""
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        return ModelFormat.ONNX if "model.onnx" in archive.namelist() else ModelFormat.NATIVE


@app.command("export")
def export(
    name: AppName,
    form: Annotated[
        ModelFormat, typer.Option(help="onnx, or native: safetensors or skops; auto: onnx where it can be")
    ] = ModelFormat.AUTO,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The zip file to write")] = None,
    project: InProject = None,
) -> None:
    """The model that answers, as a zip archive with a runnable example."""
    with connect(project) as client:
        packed = client.apps.export(name, form.value)
        target = output or Path(f"{name}-{form_of(packed).value}.zip")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(packed)
        say(f"{target}: unpack it and run  python run.py")
