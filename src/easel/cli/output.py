"""Tables for people, JSON for scripts."""

from __future__ import annotations

import csv
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, TypeVar

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.table import Table
from rich.text import Text

from easel.cli.fit import GAP, fit_columns, shorten
from easel.cli.plain import NOTHING, plain, short_id

M = TypeVar("M", bound=BaseModel)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts")]
InProject = Annotated[
    str | None,
    typer.Option("--project", "-p", envvar="EASEL_PROJECT", help="Which project", show_envvar=True),
]

console = Console()
errors = Console(stderr=True)

Columns = Sequence[tuple[str, Callable[[M], Any]]]

TEXTS = frozenset({"name", "reason", "output", "input", "description", "model", "candidate", "next"})
"""Columns that may be cut short in a narrow window."""
WHOLE = frozenset({"id", "example"})
"""Columns whose cells are copied whole, or not at all."""
ALWAYS = frozenset({"name", "state"})
"""Columns that no window is too narrow for."""
LONG = 40
"""Anything longer is a text, whatever its column is called."""


@dataclass(slots=True)
class Form:
    """How this run of the command prints lists: set by `--csv`, see `easel.cli.forms`."""

    as_csv: bool = False


chosen = Form()


def show_list(items: Iterable[M], columns: Columns[M], as_json: bool, empty: str) -> None:
    """Prints a table with the columns that fit the window, a JSON array of the whole items, or CSV."""
    if as_json:
        print(json.dumps([item.model_dump(mode="json") for item in items], indent=2))
        return
    rows = [[value(item) for _, value in columns] for item in items]
    if chosen.as_csv:
        write_csv([title for title, _ in columns], rows)
    elif rows:
        show_table([title for title, _ in columns], rows)
    else:
        errors.print(empty, style="dim", markup=False)


def show_table(titles: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Prints rows under titles: in a terminal in lines that fit it, elsewhere whole."""
    cells = [[short_id(plain(cell)) if console.is_terminal else plain(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    texts = [
        title not in WHOLE and (title in TEXTS or width > LONG)
        for title, width in zip(titles, widths, strict=True)
    ]
    kept = [number == 0 or title in ALWAYS for number, title in enumerate(titles)]
    found = fit_columns(widths, texts, kept, console.width if _limited() else sum(widths) + 1000)
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, GAP, 0, 0))
    for i in found.shown:
        table.add_column(titles[i], no_wrap=True)
    for row in cells:
        table.add_row(*(_text(shorten(row[i], w)) for i, w in zip(found.shown, found.widths, strict=True)))
    if _limited():
        console.print(table)
        left_out = [titles[i] for i in range(len(titles)) if i not in found.shown]
        if left_out:
            errors.print(
                f"not shown here: {', '.join(left_out)} (a wider window, --json or --csv)", style="dim"
            )
    else:
        console.print(table, width=sum(widths) + GAP * len(widths) + 1, no_wrap=True, crop=False)


def show_one(item: BaseModel, as_json: bool) -> None:
    if as_json:
        print(json.dumps(item.model_dump(mode="json"), indent=2))
        return
    fields = [(name.replace("_", " "), getattr(item, name)) for name in type(item).model_fields]
    if chosen.as_csv:
        write_csv([name for name, _ in fields], [[value for _, value in fields]])
        return
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, GAP, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in fields:
        table.add_row(name, _text(plain(value)))
    console.print(table)


def write_csv(titles: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Prints CSV, with values that a spreadsheet would take for formulas escaped."""
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(titles)
    for row in rows:
        out.writerow([_csv_cell(value) for value in row])


def say(message: str) -> None:
    """Print a line for people on stderr, so that a pipe gets only data."""
    errors.print(message, markup=False, highlight=False, soft_wrap=not errors.is_terminal)


def warn(message: str) -> None:
    """What nobody must overlook, on stderr."""
    errors.print(f"WARNING: {message}", markup=False, highlight=False, style="bold red")


def _csv_cell(value: Any) -> Any:
    from easel.declare.csv_table import escaped

    if value is None:
        return ""
    return value if isinstance(value, int | float) else escaped(plain(value))


def _text(text: str) -> Text:
    """Plain text: a name with square brackets is a name, not markup."""
    return Text(text, style="dim") if text == NOTHING else Text(text)


def _limited() -> bool:
    """Whether lines have an end: in a terminal, or where COLUMNS says so. A pipe takes everything."""
    return console.is_terminal or "COLUMNS" in os.environ


def is_wide() -> bool:
    """Whether there is room for sentences beside figures."""
    return console.width >= 120


def counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def ago(moment: datetime | None) -> str:
    if moment is None:
        return "never"
    seconds = (datetime.now(UTC) - moment).total_seconds()
    for size, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {name} ago"
    return "just now"


def time_of_day(seconds: float) -> str:
    """Returns so many seconds from now, on the clock of whoever reads it; with the day where it is another."""
    if not math.isfinite(seconds) or seconds > 10 * 365 * 86_400:
        return "never"
    now = datetime.now().astimezone()
    then = now + timedelta(seconds=seconds)
    return then.strftime("%H:%M:%S" if then.date() == now.date() else "%a %d %b %H:%M")
