"""Tables for people, JSON for scripts."""

from __future__ import annotations

import csv
import functools
import json
import math
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, TextIO, TypeVar

import typer

from easel.cli.fit import GAP, fit_columns, fold, padded, shorten
from easel.cli.plain import NOTHING, Ago, Lasting, plain, short_id

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console

M = TypeVar("M", bound="BaseModel")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts")]
InProject = Annotated[
    str | None,
    typer.Option("--project", "-p", envvar="EASEL_PROJECT", help="Which project", show_envvar=True),
]

BOLD, DIM, RED = "1", "2", "1;31"
"""How a terminal is told."""


@functools.cache
def console() -> Console:
    """What draws trees and marks on standard output; a list needs none of it, and it takes long to import."""
    from rich.console import Console

    return Console()


@functools.cache
def errors() -> Console:
    """What draws progress bars on standard error."""
    from rich.console import Console

    return Console(stderr=True)


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
    if rows or chosen.as_csv:
        show_table([title for title, _ in columns], rows)
    else:
        print(styled(empty, DIM, sys.stderr), file=sys.stderr)


def show_table(titles: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Prints rows under titles: in a terminal in lines that fit it, elsewhere whole; or CSV, where that is wanted."""
    if chosen.as_csv:
        write_csv(titles, rows)
        return
    terminal = sys.stdout.isatty()
    cells = [[short_id(plain(cell)) if terminal else plain(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    texts = [
        title not in WHOLE and (title in TEXTS or width > LONG)
        for title, width in zip(titles, widths, strict=True)
    ]
    kept = [number == 0 or title in ALWAYS for number, title in enumerate(titles)]
    found = fit_columns(widths, texts, kept, columns_here() if _limited() else sum(widths) + 1000)
    shown = list(zip(found.shown, found.widths, strict=True))
    print(_line([(shorten(titles[i], width), width, BOLD) for i, width in shown]))
    for row in cells:
        print(_line([(shorten(row[i], w), w, DIM if row[i] == NOTHING else "") for i, w in shown]))
    left_out = [title for i, title in enumerate(titles) if i not in found.shown]
    if left_out and _limited():
        told = f"not shown here: {', '.join(left_out)} (a wider window, --json or --csv)"
        print(styled(told, DIM, sys.stderr), file=sys.stderr)


def show_one(item: M, as_json: bool, facts: Callable[[M], Sequence[tuple[str, Any]]] | None = None) -> None:
    """Prints names and values; `facts` says which of them people read, while JSON and CSV have all."""
    if as_json:
        print(json.dumps(item.model_dump(mode="json"), indent=2))
        return
    fields = [(name.replace("_", " "), getattr(item, name)) for name in type(item).model_fields]
    if chosen.as_csv:
        write_csv([name for name, _ in fields], [[value for _, value in fields]])
        return
    told = facts(item) if facts else fields
    first = max(len(name) for name, _ in told)
    room = columns_here() - first - GAP if _limited() else sys.maxsize
    for name, value in told:
        for number, line in enumerate(fold(plain(value), max(20, room), words=True)):
            print(_line([("" if number else name, first, BOLD), (line, 0, DIM if line == NOTHING else "")]))


def _line(cells: Sequence[tuple[str, int, str]]) -> str:
    """Cells side by side, each a text, its width and its style; nothing trails after the last."""
    *before, (last, _, style) = cells
    written = [styled(padded(text, width), style, sys.stdout) for text, width, style in before]
    return (" " * GAP).join([*written, styled(last, style, sys.stdout)]).rstrip()


def styled(text: str, style: str, out: TextIO) -> str:
    plainly = not style or not out.isatty() or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    return text if plainly else f"\x1b[{style}m{text}\x1b[0m"


def write_csv(titles: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Prints CSV, with values that a spreadsheet would take for formulas escaped."""
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(titles)
    for row in rows:
        out.writerow([_csv_cell(value) for value in row])


def say(message: str) -> None:
    """Print a line for people on stderr, so that a pipe gets only data."""
    whole = not sys.stderr.isatty()
    print(message if whole else "\n".join(fold(message, columns_here(), words=True)), file=sys.stderr)


def show_text(message: str) -> None:
    """Print sentences on standard output: in a window folded between words, in a pipe as they are."""
    print("\n".join(fold(message, columns_here(), words=True)) if _limited() else message)


def warn(message: str) -> None:
    """What nobody must overlook, on stderr."""
    print(styled(f"WARNING: {message}", RED, sys.stderr), file=sys.stderr)


def _csv_cell(value: Any) -> Any:
    from easel.declare.csv_table import escaped

    if isinstance(value, Ago):
        value = value.moment
    elif isinstance(value, Lasting):
        value = value.seconds
    if value is None:
        return ""
    return value if isinstance(value, int | float) else escaped(plain(value))


def _limited() -> bool:
    """Whether lines have an end: in a terminal, or where COLUMNS says so. A pipe takes everything."""
    return sys.stdout.isatty() or "COLUMNS" in os.environ


def is_wide() -> bool:
    """Whether there is room for sentences beside figures."""
    return columns_here() >= 120


def columns_here() -> int:
    """Returns how many characters a line of this window holds."""
    return shutil.get_terminal_size((80, 24)).columns


def time_of_day(seconds: float) -> str:
    """Returns so many seconds from now, on the clock of whoever reads it; with the day where it is another."""
    if not math.isfinite(seconds) or seconds > 10 * 365 * 86_400:
        return "never"
    now = datetime.now().astimezone()
    then = now + timedelta(seconds=seconds)
    return then.strftime("%H:%M:%S" if then.date() == now.date() else "%a %d %b %H:%M")
