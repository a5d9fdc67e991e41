"""`easel apps`, `easel feed`, `easel refine`, `easel infer`."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from easel.cli.connect import connect
from easel.cli.output import AsJson, Columns, InProject, say, show_list, show_one
from easel.declare.friendly import read_program
from easel.declare.program import Program
from easel.errors import InvalidInput
from easel.wire import app as wire

app = typer.Typer(no_args_is_help=True, help="Declare what to learn; see how far everybody's models are.")
feed_app = typer.Typer()
refine_app = typer.Typer()
infer_app = typer.Typer()

COLUMNS: Columns[wire.App] = [
    ("app", lambda a: a.name),
    ("template", lambda a: a.template),
    ("examples", lambda a: a.examples - a.switched_off),
    ("best", lambda a: None if a.best is None else f"{a.best.quality:.4f}"),
    ("model", lambda a: None if a.best is None else a.best.candidate),
    ("trials", lambda a: a.trials),
    ("running", lambda a: ", ".join(a.running) or None),
    ("why", lambda a: a.why),
]
EXAMPLES: Columns[wire.Example] = [
    ("example", lambda e: e.digest),
    ("class", lambda e: e.stratum),
    ("on", lambda e: e.on),
    ("fed", lambda e: e.fed_at),
]


@app.command("declare")
def declare(
    name: str,
    program: Annotated[str, typer.Argument(help="The program, or a file that holds it")],
    metric: Annotated[str | None, typer.Option(help="Without it the task's usual one")] = None,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Say what goes in and what comes out."""
    text = (
        Path(program).read_text(encoding="utf-8")
        if len(program) < 256 and Path(program).is_file()
        else program
    )
    with connect(project) as client:
        show_one(client.apps.declare(name, str(read_program(text)), metric=metric), as_json)


@app.command("ls")
def ls(project: InProject = None, as_json: AsJson = False) -> None:
    """Every app: best score, what runs, and why."""
    with connect(project) as client:
        show_list(client.apps.list(), COLUMNS, as_json, "No app yet: easel apps declare NAME PROGRAM")


@app.command("show")
def show(name: str, project: InProject = None, as_json: AsJson = False) -> None:
    """One app."""
    with connect(project) as client:
        show_one(client.apps.get(name), as_json)


@feed_app.command()
def feed(
    name: str,
    data: Annotated[
        str, typer.Argument(help='A CSV file, or JSON lines {"input": …, "output": …}; - for a pipe')
    ],
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Add pairs of examples."""
    with connect(project) as client:
        program = read_program(client.apps.get(name).program)
        fed = client.apps.feed(name, _pairs(data, program))
        if as_json:
            show_one(fed, as_json)
        else:
            say(f"{fed.new} new, {fed.known} known already, {fed.total} in all")


@refine_app.command()
def refine(
    name: str,
    digests: Annotated[
        list[str] | None, typer.Argument(help="Examples to switch; without any they are listed")
    ] = None,
    on: Annotated[bool, typer.Option("--on/--off", help="Switch on or off")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Take back the newest switch")] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Browse all examples ever fed; switch them off and on."""
    with connect(project) as client:
        if undo or digests:
            changed = client.apps.undo(name) if undo else client.apps.refine(name, digests or [], on=on)
            say(f"{len(changed)} examples switched")
        else:
            show_list(client.apps.examples(name), EXAMPLES, as_json, "Nothing was fed yet.")


@infer_app.command()
def infer(
    name: str,
    objects: Annotated[
        str, typer.Argument(help="One object as JSON, a CSV or JSON-lines file, or - for a pipe")
    ],
    project: InProject = None,
) -> None:
    """Ask the best model so far; one JSON line for each object."""
    with connect(project) as client:
        program = read_program(client.apps.get(name).program)
        found = client.apps.infer(name, list(_objects(objects, program)))
        say(f"{found.candidate} ({found.model}), validation score {found.quality:.4f}")
        for answer in found.answers:
            print(json.dumps(answer))


def _lines(source: str) -> Iterator[Any]:
    text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                yield json.loads(line)
            except json.JSONDecodeError as error:
                raise InvalidInput(f"line {number} is not JSON: {error}") from None


def _rows(path: str) -> Iterator[dict[str, str]]:
    with Path(path).open(newline="", encoding="utf-8-sig") as file:
        yield from csv.DictReader(file)


def _pairs(source: str, program: Program) -> Iterator[tuple[Any, Any]]:
    inputs, outputs = program.input.field_names, program.output.field_names
    if source.endswith(".csv"):
        for row in _rows(source):
            missing = [name for name in (*inputs, *outputs) if name not in row]
            if missing:
                raise InvalidInput(f"{source} has no column {missing[0]!r}")
            yield {name: row[name] for name in inputs}, {name: row[name] for name in outputs}
        return
    for line in _lines(source):
        if not isinstance(line, dict) or set(line) != {"input", "output"}:
            raise InvalidInput('each line is {"input": …, "output": …}')
        yield line["input"], line["output"]


def _objects(source: str, program: Program) -> Iterator[Any]:
    if source.endswith(".csv"):
        for row in _rows(source):
            yield {name: row.get(name) for name in program.input.field_names}
    elif source == "-" or Path(source[:200]).is_file():
        yield from _lines(source)
    else:
        try:
            yield json.loads(source)
        except json.JSONDecodeError as error:
            raise InvalidInput(f"{source[:60]!r} is neither a file nor JSON: {error}") from None
