"""Tables for people, JSON for scripts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.table import Table
from rich.text import Text

M = TypeVar("M", bound=BaseModel)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts")]
InProject = Annotated[
    str | None,
    typer.Option("--project", "-p", envvar="EASEL_PROJECT", help="Which project", show_envvar=True),
]

console = Console()
errors = Console(stderr=True)

Columns = Sequence[tuple[str, Callable[[M], Any]]]


def show_list(items: Iterable[M], columns: Columns[M], as_json: bool, empty: str) -> None:
    """A table with these columns, or a JSON array of the whole items."""
    if as_json:
        print(json.dumps([item.model_dump(mode="json") for item in items], indent=2))
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title, _ in columns:
        # An id is copied whole, or not at all.
        table.add_column(title, overflow="fold", no_wrap=title in ("id", "example"))
    for item in items:
        table.add_row(*(_cell(value(item)) for _, value in columns))
    if table.row_count:
        console.print(table)
    else:
        errors.print(empty, style="dim", markup=False)


def show_one(item: BaseModel, as_json: bool) -> None:
    if as_json:
        print(json.dumps(item.model_dump(mode="json"), indent=2))
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name in type(item).model_fields:
        table.add_row(name.replace("_", " "), _cell(getattr(item, name)))
    console.print(table)


def say(message: str) -> None:
    """For people, on stderr, so that a pipe gets only data."""
    errors.print(message, markup=False, highlight=False)


def warn(message: str) -> None:
    """What nobody must overlook, on stderr."""
    errors.print(f"WARNING: {message}", markup=False, highlight=False, style="bold red")


def _cell(value: Any) -> Text:
    """Plain text: a name with square brackets is a name, not markup."""
    if value is None:
        return Text("–", style="dim")
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    if isinstance(value, datetime):
        return Text(value.astimezone().strftime("%Y-%m-%d %H:%M:%S"))
    return Text(str(value))


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
