"""Runs a command, or shows its help, without building Typer's commands, which takes longer than most commands do."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import typer
from typer.models import CommandInfo

from easel.cli import forms
from easel.cli.declared import NotPlain, parameters, read_words

HELP = "--help"


class NamedCommand(NamedTuple):
    """A command and the words that are left for it; `path` is how it is called."""

    path: tuple[str, ...]
    run: Callable[..., Any]
    words: tuple[str, ...]


def find(part: typer.Typer, name: str, words: Sequence[str]) -> NamedCommand | None:
    """Returns the command that the words name, or None where Typer must be asked: a group, a mistake, a callback."""
    path, rest = [name], list(words)
    while True:
        if part.registered_callback is not None:
            return None
        if len(part.registered_commands) == 1 and not part.registered_groups:
            only = part.registered_commands[0]
            return _found(path, part, only, rest)
        if not rest or rest[0].startswith("-"):
            return None
        wanted = rest.pop(0)
        path.append(wanted)
        command = next((each for each in part.registered_commands if _name(each) == wanted), None)
        if command is not None:
            return _found(path, part, command, rest)
        group = next((each for each in part.registered_groups if each.name == wanted), None)
        if group is None or group.typer_instance is None or group.callback:
            return None
        part = group.typer_instance
        if len(part.registered_commands) == 1 and not part.registered_groups:
            return None  # within a group Typer keeps the name of a single command


def _found(
    path: Sequence[str], part: typer.Typer, command: CommandInfo, rest: Sequence[str]
) -> NamedCommand | None:
    forms.offer_forms(part)
    if command.callback is None or command.deprecated:
        return None
    return NamedCommand(tuple(path), command.callback, tuple(rest))


def _name(command: CommandInfo) -> str:
    given = command.name or (command.callback.__name__ if command.callback else "")
    return given.lower().replace("_", "-") if not command.name else given


def run(part: typer.Typer, name: str, words: Sequence[str]) -> int | None:
    """Runs a command as its words say and returns its exit code; None where nothing was done and Typer is asked."""
    if words and words[-1] == HELP and "--" not in words:
        return _show_help(part, name, words[:-1])
    found = find(part, name, words)
    if found is None:
        bare = all(_group(part, word) is not None for word in words)
        return 2 if bare and _show_help(part, name, words) == 0 else None
    try:
        given = read_words(parameters(found.run), found.words, os.environ)
    except NotPlain:
        return None
    try:
        found.run(**given)
    except typer.Exit as end:
        return end.exit_code
    except typer.Abort:
        print("Aborted.", file=sys.stderr)
        return 1
    return 0


def _show_help(part: typer.Typer, name: str, words: Sequence[str]) -> int | None:
    from easel.cli import help_page

    path = [name]
    rest = list(words)
    while rest and (inner := _group(part, rest[0])) is not None:
        part = inner
        path.append(rest.pop(0))
    is_group = len(part.registered_commands) > 1 or bool(part.registered_groups)
    if is_group and not rest:
        print(help_page.of_group(path, part))
        return 0
    found = find(part, name, rest)
    if found is None:
        return None
    try:
        print(help_page.of_command((*path, *found.path[1:]), found.run))
    except NotPlain:
        return None
    return 0


def _group(part: typer.Typer, name: str) -> typer.Typer | None:
    return next((each.typer_instance for each in part.registered_groups if each.name == name), None)
