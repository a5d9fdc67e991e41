"""`easel infer` and `easel generate`: asking an app's model, here or from programs written for it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from easel.cli.app_words import AppName, first_of, who_answered
from easel.cli.connect import connect
from easel.cli.output import InProject, say
from easel.declare.answers import write_answers, write_pictures
from easel.declare.counted import counted
from easel.errors import Denied, InvalidInput
from easel.sdk.examples import json_values, pictures_in, read_declared, rows_in

if TYPE_CHECKING:
    from easel.sdk.client import Client
    from easel.wire import app as wire

MOST_NOTES = 20
infer_app = typer.Typer()
generate_app = typer.Typer()


@infer_app.command()
def infer(
    name: AppName,
    objects: Annotated[
        list[str],
        typer.Argument(
            help="Objects as JSON, CSV or JSON-lines files, pictures, folders of pictures, - for a pipe"
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
    """Ask the best model so far; one JSON line for each object, with its name where there are several files."""
    names: list[str] = []
    rows: list[dict[str, Any]] = []
    answers: list[dict[str, Any]] = []
    told = ""
    with connect(project) as client:
        for one in objects:
            found = _asked(client, name, one, skip_bad)
            if found.model != told:  # a better one may have taken over meanwhile
                say(who_answered(found, _serving(client, name)))
                told = found.model
            for line in first_of([f"note: {note}" for note in found.notes], MOST_NOTES):
                say(line)
            names += _names_of(one, len(found.answers), len(objects) > 1 or output is not None)
            rows += rows_in(Path(one)) if output is not None and _is_path(one) else []
            answers += found.answers
        if output is not None:
            outputs = read_declared(client.apps.get(name).program).output.field_names
            if output.suffix.lower() == ".csv":
                write_answers(output, _beside(objects, names, rows, len(answers)), answers, outputs)
            else:
                write_pictures(output, names, answers)
            say(f"{output}: {counted(len(answers), 'answer')}")
            return
    for number, answer in enumerate(answers):
        print(json.dumps({"file": names[number], **answer} if names else answer))


def _asked(client: Client, name: str, one: str, skip_bad: bool) -> wire.Answers:
    if one == "-":
        return client.apps.infer(name, list(json_values(sys.stdin)), skip_bad=skip_bad)
    if _is_path(one):
        return client.apps.infer_path(name, one, skip_bad=skip_bad)
    try:
        return client.apps.infer(name, [json.loads(one)], skip_bad=skip_bad)
    except json.JSONDecodeError as error:
        read = f", and as JSON: {error}" if one.lstrip()[:1] in ("{", "[", '"') else ""
        raise InvalidInput(f"there is no file {one[:60]}{read}") from None


def _serving(client: Client, name: str) -> wire.BestModel | None:
    """Returns the model that answers now; None for a token that may ask and not look."""
    try:
        return client.apps.get(name).serving
    except Denied:
        return None


def _is_path(one: str) -> bool:
    return len(one) < 4096 and Path(one).exists()


def _names_of(one: str, count: int, always: bool) -> list[str]:
    """Returns a name for each answer, where names are wanted: those of a folder's pictures, or what was given."""
    if not _is_path(one):
        return [one[:60]] * count if always else []
    path = Path(one)
    if path.is_dir():
        return [str(each.relative_to(one)) for each in pictures_in(path)]
    if not always:
        return []
    return [path.name] if count == 1 else [f"{path.stem}-{number + 1:04d}" for number in range(count)]


def _beside(
    objects: list[str], names: list[str], rows: list[dict[str, Any]], count: int
) -> list[dict[str, Any]]:
    """Returns what stands beside the answers in a table: the rows that were asked about, or the names of files."""
    if rows and (len(objects) == 1 or len(rows) == count):
        return rows
    return [{"file": each} for each in names] if any(map(_is_path, objects)) else []


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
