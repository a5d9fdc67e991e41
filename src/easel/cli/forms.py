"""`--csv` for every command with `--json`, `--watch` for every list: given once, when a command is loaded."""

from __future__ import annotations

import copy
import functools
import inspect
import sys
import time
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from easel.cli import output
from easel.cli.complete import COMPLETERS, Completer

LISTS = frozenset(
    {"ls", "devices", "trials", "points", "attempts", "front", "find", "log", "tokens", "metrics"}
)
"""Commands that only list what is there; each may be watched."""


class PlainCommand(TyperCommand):
    """A command whose mistakes are told with the names that our help has: JOB, [TARGET], OBJECTS…"""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        taken: list[Any] = list(self.params)
        for each in taken:
            if each.param_type_name == "argument" and not each.metavar:
                each.metavar = str(each.name).upper()

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        places = [_place(each) for each in self.params if each.param_type_name == "argument"]
        return [*(["[OPTIONS]"] if len(places) < len(self.params) else []), *places]


def _place(argument: Any) -> str:
    name = argument.metavar + ("" if argument.nargs == 1 else "…")
    return name if argument.required else f"[{name}]"


AsCsv = Annotated[bool, typer.Option("--csv", help="Print CSV for spreadsheets")]
Watch = Annotated[
    float | None,
    typer.Option("--watch", metavar="SECONDS", min=0.5, help="Show it again every so many seconds"),
]


def offer_forms(part: typer.Typer) -> None:
    """Adds the options, and completion of names, to the commands of a part; the second time it changes nothing."""
    for group in part.registered_groups:
        if group.typer_instance is not None:
            offer_forms(group.typer_instance)
    for command in part.registered_commands:
        given = command.callback
        if given is not None and not hasattr(given, "offers_forms"):
            command.callback = _with_forms(given, (command.name or given.__name__) in LISTS)
            command.cls = PlainCommand


def _with_forms(given: Callable[..., Any], listed: bool) -> Callable[..., Any]:
    @functools.wraps(given)
    def command(*arguments: Any, as_csv: bool = False, watch: float | None = None, **named: Any) -> Any:
        output.chosen.as_csv = as_csv
        if watch is None:
            return given(*arguments, **named)
        while True:
            print("\x1b[2J\x1b[H" if sys.stdout.isatty() else "", end="")
            given(*arguments, **named)
            time.sleep(watch)

    hints = get_type_hints(given, include_extras=True)
    own = [
        p.replace(annotation=_completed(p, hints.get(p.name, Any)))
        for p in inspect.signature(given).parameters.values()
    ]
    added: list[inspect.Parameter] = []
    if "as_json" in hints:
        keyword = inspect.Parameter.KEYWORD_ONLY
        added.append(inspect.Parameter("as_csv", keyword, default=False, annotation=AsCsv))
        if listed:
            added.append(inspect.Parameter("watch", keyword, default=None, annotation=Watch))
    command.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in (*own, *added)}
    command.offers_forms = True  # type: ignore[attr-defined]
    return command


def _completed(parameter: inspect.Parameter, hint: Any) -> Any:
    """The hint, with completion where the parameter's name says what it names."""
    completer = COMPLETERS.get(parameter.name)
    if completer is None:
        return hint
    if get_origin(hint) is not Annotated:
        if hint is str and parameter.default is inspect.Parameter.empty:
            return Annotated[str, typer.Argument(autocompletion=completer)]
        return hint
    kind, *about = get_args(hint)
    about = [_copy(each, completer) for each in about]
    return Annotated[(kind, *about)]


def _copy(about: Any, completer: Completer) -> Any:
    if not hasattr(about, "autocompletion") or about.autocompletion is not None:
        return about
    made = copy.copy(about)
    made.autocompletion = completer
    return made
