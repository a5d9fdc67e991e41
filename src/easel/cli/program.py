"""`easel infer-program` and `easel match`: from data to a program, from a program to candidates. No server."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from easel.cli.output import AsJson, console, say
from easel.declare.counted import counted
from easel.declare.csv_table import read_table_file
from easel.declare.friendly import read_program
from easel.declare.propose import PICTURES, Proposal, propose_from_folder, propose_from_table
from easel.errors import InvalidInput

infer_app = typer.Typer()
match_app = typer.Typer()

MOST_ROWS = 20_000


@infer_app.command()
def infer_program(
    data: Annotated[
        Path,
        typer.Argument(
            help="A CSV, xlsx or Parquet file, a folder with one folder for each class, or with input/ and output/"
        ),
    ],
    target: Annotated[str | None, typer.Option(help="The column to predict")] = None,
    as_json: AsJson = False,
) -> None:
    """Look at data and propose the program that describes them."""
    proposal = look(data, target)
    if as_json:
        found = {"program": str(proposal.program), "target": proposal.target, "reasons": proposal.reasons}
        print(json.dumps(found, indent=2))
        return
    for reason in proposal.reasons:
        say(f"  {reason}")
    if target is None and not data.is_dir():
        say("  (another column: --target NAME)")
    print(proposal.program)


def look(data: Path, target: str | None) -> Proposal:
    """The I/O around the pure proposals."""
    if data.is_dir():
        names = [p for p in sorted(data.rglob("*")) if p.suffix.lower() in PICTURES][:MOST_ROWS]
        return propose_from_folder({p.relative_to(data).as_posix(): _size(p) for p in names})
    if not data.is_file():
        raise InvalidInput(f"there is no file or folder {data}")
    if data.suffix.lower() == ".parquet":
        header, rows = _parquet(data)
    else:
        header, rows = read_table_file(data.read_bytes(), data.name)
    body = list(islice(rows, MOST_ROWS))
    if not body:
        raise InvalidInput(f"{data.name} needs a line of names and at least one row")
    return propose_from_table({name: [_cell(row.get(name)) for row in body] for name in header}, target)


def _cell(value: Any) -> str:
    return "" if value is None else str(value)


def _parquet(data: Path) -> tuple[list[str], Iterator[dict[str, Any]]]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InvalidInput("reading Parquet needs pyarrow: pip install 'easel-ml[apps]'") from None
    try:
        table = pyarrow.parquet.ParquetFile(data)
        names = list(table.schema_arrow.names)
        return names, (row for batch in table.iter_batches(MOST_ROWS) for row in batch.to_pylist())
    except (pyarrow.ArrowException, OSError) as error:
        raise InvalidInput(f"{data.name} is not a Parquet file: {error}") from None


def _size(path: Path) -> tuple[int, int, int] | None:
    """Read from the file's head alone; unknown where Pillow is not installed or the file is damaged."""
    try:
        from PIL import Image
    except ImportError:
        return None
    try:
        with Image.open(path) as picture:
            return picture.height, picture.width, len(picture.getbands())
    except (OSError, ValueError, Image.DecompressionBombError):
        return None


@match_app.command()
def match(
    program: Annotated[
        str, typer.Argument(help="The program, a file that holds it, or - for standard input")
    ],
    examples: Annotated[int, typer.Option(help="How many examples there will be, for the costs")] = 1_000,
    as_json: AsJson = False,
) -> None:
    """Show which template fires and every candidate with its estimated cost."""
    from rich.table import Table

    from easel.match.propose import propose_candidates
    from easel.match.summary import expected_summary
    from easel.match.templates import match_program

    declared = read_program(_text(program))
    template = match_program(declared)
    found = propose_candidates(declared, expected_summary(declared, examples))
    if as_json:
        shown = [{"name": c.name, **c.to_json()} for c in found]
        print(
            json.dumps({"program": str(declared), "template": template.name, "candidates": shown}, indent=2)
        )
        return
    console().print(
        f"[bold]{template.name}[/bold]: {counted(len(found), 'candidate')}, in the order of their promise per cost"
    )
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("candidate")
    table.add_column("estimated seconds", justify="right")
    for candidate in found:
        table.add_row(candidate.name, f"{candidate.cost_s:,.1f}")
    console().print(table)


def _text(program: str) -> str:
    if program == "-":
        return sys.stdin.read()
    if len(program) < 256 and "{" not in program and "\n" not in program and Path(program).is_file():
        return Path(program).read_text(encoding="utf-8")
    return program
