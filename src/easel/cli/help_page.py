"""The help of `easel`, of a group and of a command, in lines that fit the window, with examples."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

import typer

from easel.cli.declared import Parameter, parameters
from easel.cli.examples import EXAMPLES
from easel.cli.fit import fold
from easel.cli.output import BOLD, columns_here, styled

SECTIONS: dict[str, tuple[str, ...]] = {
    "Begin": ("up", "login", "whoami", "logout", "projects", "open", "doctor"),
    "Run code": (
        *("run", "jobs", "logs", "why", "rerun", "attach", "shell", "cp", "lab", "reproduce"),
        *("pipelines", "secrets"),
    ),
    "Learn from data": (
        *("learn", "apps", "feed", "refine", "infer", "score", "card", "checks", "generate"),
        *("infer-program", "match"),
    ),
    "Tune": ("studies", "profiles", "estimate", "provision", "promises", "simulate"),
    "Files": (
        *("put", "get", "ls", "cat", "rm", "mv", "filesets", "tag", "find", "trace", "notes"),
        *("import", "export"),
    ),
    "Pool and money": (
        *("queues", "devices", "shares", "bills", "quotas", "storage", "events", "messages"),
        *("drain", "undrain", "reserve", "reservations"),
    ),
    "People": ("users", "invitations", "tokens", "service-accounts", "grants", "audit"),
    "Operate": (
        *("serve", "controller", "worker", "workers", "health", "cordon", "uncordon", "gc"),
        *("backup", "restore"),
    ),
}
"""Every command under the heading where people look for it."""
FIRST: dict[str, tuple[str, ...]] = {
    "Begin": ("up", "login"),
    "Learn from a table or pictures, without programming": ("learn", "infer", "feed", "apps"),
    "Run and tune your own code": ("run", "jobs", "logs", "studies"),
    "Share data and machines": ("put", "users", "queues"),
    "Understand": ("why", "open", "doctor"),
}
"""What people need on their first day, by who they are; `easel help all` shows the rest."""
_SENTENCE_END = re.compile(r"\.\s+(?=[A-Z`])")
_WIDEST = 30
"""Names longer than this stand on a line of their own."""


def first_screen(listed: Mapping[str, str], about: str) -> str:
    """Returns what `easel` alone says: where to begin, and how to see everything."""
    lines = [_title("easel COMMAND …"), "", *_text(about), ""]
    for section, names in FIRST.items():
        lines += [_title(section), *_rows([(name, listed[name]) for name in names])]
    others = len(listed) - sum(map(len, FIRST.values()))
    told = f"easel help all: the other {others} commands. easel COMMAND --help: examples."
    return "\n".join([*lines, "", *_text(told)])


def of_easel(listed: Mapping[str, str], about: str, after: str) -> str:
    """Returns the help of `easel` itself: every command under its heading."""
    lines = [_title("easel COMMAND …"), "", *_text(about), ""]
    for section, names in SECTIONS.items():
        lines += [_title(section), *_rows([(name, listed[name]) for name in names])]
    lines += [
        _title("Options"),
        *_rows(
            [
                ("--version", "Show the version"),
                ("--install-completion", "Complete names with Tab from now on"),
                ("--help", "Show this; easel COMMAND --help tells more"),
            ]
        ),
    ]
    return "\n".join([*lines, "", *_text(after)])


def of_group(path: Sequence[str], part: typer.Typer) -> str:
    """Returns the help of a group: what its commands do."""
    about = part.info.help if isinstance(part.info.help, str) else ""
    rows = [(_name_of(each), _first(each.help or each.callback)) for each in part.registered_commands]
    rows += [(str(each.name), _first(each.typer_instance)) for each in part.registered_groups]
    shown = [f"easel {' '.join(path)} COMMAND …", "", about, ""]
    lines = [_title(shown[0]), *shown[1:], _title("Commands"), *_rows(rows)]
    return "\n".join([*lines, *_examples(" ".join(path))])


def of_command(path: Sequence[str], command: Callable[..., Any]) -> str:
    """Returns the help of a command. NotPlain where only Typer knows what it takes."""
    known = [each for each in parameters(command) if not each.hidden]
    arguments = [each for each in known if not each.is_option]
    options = [each for each in known if each.is_option]
    usage = " ".join(
        [f"easel {' '.join(path)}", *(["[OPTIONS]"] if options else []), *map(_shown, arguments)]
    )
    lines = [_title(usage), "", *_text(inspect.getdoc(command) or "")]
    if any(each.help for each in arguments):
        lines += ["", _title("Arguments"), *_rows([(_shown(each), _about(each)) for each in arguments])]
    rows = [(_spelling(each), _about(each)) for each in options]
    lines += ["", _title("Options"), *_rows([*rows, ("--help", "Show this")])]
    return "\n".join([*lines, *_examples(" ".join(path))])


def _examples(path: str) -> list[str]:
    found = EXAMPLES.get(path, ())
    return ["", _title("Examples"), *(f"  {each}" for each in found)] if found else []


def _name_of(command: Any) -> str:
    return str(command.name or command.callback.__name__.replace("_", "-"))


def _first(what: Any) -> str:
    """Returns the first sentence of what a text, a function or a group of commands says about itself."""
    if isinstance(what, typer.Typer):
        what = what.info.help
    text = what if isinstance(what, str) else inspect.getdoc(what) or ""
    return _SENTENCE_END.split(text.partition("\n\n")[0].replace("\n", " "))[0].removesuffix(".")


def _shown(argument: Parameter) -> str:
    name = argument.metavar + ("…" if argument.several else "")
    return name if argument.required else f"[{name}]"


def _spelling(option: Parameter) -> str:
    names = sorted(option.names, key=len)
    text = ", ".join(names) + "".join(f"/{each}" for each in option.off if option.names)
    text = text or ", ".join(option.off)
    return f"{text} {option.metavar}" if option.kind else text


def _about(parameter: Parameter) -> str:
    parts = []
    if parameter.is_option and parameter.required:
        parts.append("required")
    elif parameter.default not in (None, False, True, "", [], ()):
        value = parameter.default
        parts.append(f"default {value.value if isinstance(value, Enum) else value}")
    if parameter.several and parameter.is_option and "repeatable" not in parameter.help:
        parts.append("repeatable")
    if parameter.variables:
        parts.append(f"or {', '.join(parameter.variables)}")
    return parameter.help + (f" ({'; '.join(parts)})" if parts else "")


def _text(text: str) -> list[str]:
    """Returns paragraphs in lines that fit; a line within a paragraph goes on where the one before it ends."""
    paragraphs = text.split("\n\n")
    lines = [fold(" ".join(each.split()), columns_here(), words=True) for each in paragraphs]
    return [line for number, each in enumerate(lines) for line in ([""] if number else []) + each]


def _rows(rows: Iterable[tuple[str, str]]) -> list[str]:
    """Returns names and what they are side by side, the second column folded between words."""
    rows = list(rows)
    wide = min(_WIDEST, max((len(name) for name, _ in rows), default=0))
    room = max(20, columns_here() - wide - 4)
    lines = []
    for name, about in rows:
        first, *more = fold(about, room, words=True)
        if len(name) > wide:
            lines.append(f"  {name}")
            more, first, name = [first, *more], "", ""
        if first or name:
            lines.append(f"  {name:<{wide}}  {first}".rstrip())
        lines += [f"  {'':<{wide}}  {line}" for line in more]
    return lines


def _title(text: str) -> str:
    return styled(text, BOLD, sys.stdout)
