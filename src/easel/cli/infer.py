"""`easel infer` and `easel generate`: asking an app's model, here or from programs written for it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from easel.cli.app_words import AppName
from easel.cli.connect import connect
from easel.cli.output import InProject, counted, say
from easel.declare.answers import write_answers, write_pictures
from easel.errors import InvalidInput
from easel.sdk.examples import json_values, pictures_in, read_declared, rows_in

infer_app = typer.Typer()
generate_app = typer.Typer()


@infer_app.command()
def infer(
    name: AppName,
    objects: Annotated[
        str,
        typer.Argument(
            help="One object as JSON, a CSV or JSON-lines file, a picture, a folder of pictures, - for a pipe"
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A CSV file for the answers, or a folder for answered pictures"),
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Answer objects that do not fit with their error")
    ] = False,
    project: InProject = None,
) -> None:
    """Ask the best model so far; one JSON line for each object, with its name where it is a file of a folder."""
    names: list[str] = []
    rows: list[dict[str, Any]] = []
    with connect(project) as client:
        if objects == "-":
            found = client.apps.infer(name, list(json_values(sys.stdin)), skip_bad=skip_bad)
        elif len(objects) < 4096 and Path(objects).is_dir():
            names = [str(path.relative_to(objects)) for path in pictures_in(Path(objects))]
            found = client.apps.infer_path(name, objects, skip_bad=skip_bad)
        elif len(objects) < 4096 and Path(objects).exists():
            names = [Path(objects).name] if output is not None and output.suffix != ".csv" else []
            rows = rows_in(Path(objects)) if output is not None else []
            found = client.apps.infer_path(name, objects, skip_bad=skip_bad)
        else:
            try:
                found = client.apps.infer(name, [json.loads(objects)], skip_bad=skip_bad)
            except json.JSONDecodeError as error:
                raise InvalidInput(f"there is no file {objects[:60]}, and as JSON: {error}") from None
        say(f"{found.candidate} ({found.model}), validation score {found.quality:.4f}")
        for note in found.notes[:20]:
            say(f"note: {note}")
        if output is not None:
            outputs = read_declared(client.apps.get(name).program).output.field_names
            if output.suffix.lower() == ".csv":
                beside = rows or [{"file": one} for one in names]
                write_answers(output, beside, found.answers, outputs)
            else:
                write_pictures(output, names, found.answers)
            say(f"{output}: {counted(len(found.answers), 'answer')}")
            return
        for number, answer in enumerate(found.answers):
            print(json.dumps({"file": names[number], **answer} if names else answer))


@generate_app.command()
def generate(
    name: AppName,
    folder: Annotated[Path, typer.Option("--output", "-o", help="Where to write the programs")] = Path(),
    project: InProject = None,
) -> None:
    """Write stand-alone programs feed, refine, infer and a typed module; the token stays outside."""
    with connect(project) as client:
        sources = client.apps.sources(name)
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in sources.items():
        (folder / file).write_text(text, encoding="utf-8")
        say(str(folder / file))
