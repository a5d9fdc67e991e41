"""What a command takes, read from its signature: for running it and for its help without building Typer's commands.

Typer builds a validator of pydantic for every parameter of every command beside it, which takes longer than most
commands do. Here a command line is read only where nothing about it is unusual; everything else (a mistake, above all)
is None, and is left to Typer and its words.
"""

from __future__ import annotations

import inspect
import os
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from typer.models import ArgumentInfo, OptionInfo, ParameterInfo

Read = Callable[[str], Any]
_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)
_UNUSUAL = (
    "callback",
    "parser",
    "click_type",
    "default_factory",
    "prompt",
    "is_eager",
    "count",
    "resolve_path",
    "exists",
    "formats",
    "path_type",
)
"""What a parameter may say that is left to Typer."""


class NotPlain(Exception):
    """Something that only Typer knows how to read."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One option or argument; an option has `names`, and `off` where a flag can also be switched off."""

    name: str
    names: tuple[str, ...]
    off: tuple[str, ...]
    kind: str
    """Of its values, for people: TEXT, INTEGER, NUMBER, PATH, a choice, or empty for a flag."""
    read: Read
    several: bool
    required: bool
    default: Any
    variables: tuple[str, ...]
    help: str
    metavar: str
    hidden: bool

    @property
    def is_option(self) -> bool:
        return bool(self.names or self.off)

    @property
    def is_flag(self) -> bool:
        return self.is_option and not self.kind


def parameters(command: Callable[..., Any]) -> list[Parameter]:
    """Returns what a command takes, in the order of its signature. NotPlain where Typer must be asked."""
    hints = typing.get_type_hints(command, include_extras=True)
    signature = inspect.signature(command)
    return [_parameter(each, hints.get(each.name, each.annotation)) for each in signature.parameters.values()]


def _parameter(given: inspect.Parameter, hint: Any) -> Parameter:
    required = given.default is inspect.Parameter.empty
    default = None if required else given.default
    if isinstance(default, ParameterInfo):
        raise NotPlain(given.name)
    info: ParameterInfo = ArgumentInfo(default=...) if required else OptionInfo(default=...)
    if get_origin(hint) is Annotated:
        hint, *about = get_args(hint)
        info = next((each for each in about if isinstance(each, ParameterInfo)), info)
    if any(getattr(info, name, None) for name in _UNUSUAL):
        raise NotPlain(given.name)
    hint, several = _bare(hint)
    read, kind = _reader(hint, info)
    names, off = _flags(given.name, info, kind) if isinstance(info, OptionInfo) else ((), ())
    asked = [info.envvar] if isinstance(info.envvar, str) else list(info.envvar or ())
    if asked and (several or not kind):
        raise NotPlain(given.name)
    shown = str(info.help or "")
    metavar = str(info.metavar or "") or (kind if names else given.name.upper())
    return Parameter(
        given.name,
        names,
        off,
        kind,
        read,
        several,
        required,
        default,
        tuple(asked),
        shown,
        metavar,
        bool(info.hidden),
    )


def _bare(hint: Any) -> tuple[Any, bool]:
    """Returns the type of one value, and whether there may be several."""
    if get_origin(hint) in (Union, types.UnionType):
        inner = [each for each in get_args(hint) if each is not types.NoneType]
        if len(inner) != 1:
            raise NotPlain(str(hint))
        hint = inner[0]
    if get_origin(hint) is list:
        return get_args(hint)[0], True
    return hint, False


def _reader(hint: Any, info: ParameterInfo) -> tuple[Read, str]:
    if hint is str:
        return str, "TEXT"
    if hint is bool:
        return _refuse, ""
    if hint is int:
        return _within(_whole, info), "INTEGER"
    if hint is float:
        return _within(_number, info), "NUMBER"
    if hint is Path:
        return _path, "PATH"
    if get_origin(hint) is Literal:
        choices = {str(each): each for each in get_args(hint)}
    elif isinstance(hint, type) and issubclass(hint, Enum):
        choices = {str(each.value): each for each in hint}
    else:
        raise NotPlain(str(hint))
    return lambda text: _chosen(choices, text), "[" + "|".join(choices) + "]"


def _refuse(text: str) -> Any:
    raise NotPlain(text)


def _whole(text: str) -> int:
    return int(text) if _WHOLE.fullmatch(text) else _refuse(text)


def _number(text: str) -> float:
    return float(text) if _NUMBER.fullmatch(text) else _refuse(text)


def _path(text: str) -> Path:
    if not text or text == "-" or (Path(text).exists() and not os.access(text, os.R_OK)):
        raise NotPlain(text)
    return Path(text)


def _chosen(choices: Mapping[str, Any], text: str) -> Any:
    return choices[text] if text in choices else _refuse(text)


def _within(read: Callable[[str], float], info: ParameterInfo) -> Read:
    low, high = info.min, info.max

    def checked(text: str) -> float:
        value = read(text)
        if (low is not None and value < low) or (high is not None and value > high):
            raise NotPlain(text)
        return value

    return checked


def _flags(name: str, info: OptionInfo, kind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    # Within Annotated the first of its names stands where a default would.
    first = (info.default,) if isinstance(info.default, str) else ()
    written = (*first, *(info.param_decls or ()))
    plain = f"--{name.replace('_', '-')}"
    if not any(each.startswith("-") for each in written):
        return (plain,), (f"--no-{plain[2:]}",) if not kind else ()
    on = tuple(each.partition("/")[0].strip() for each in written)
    off = tuple(each.partition("/")[2].strip() for each in written if "/" in each)
    return tuple(each for each in on if each), off


def read_words(
    known: Sequence[Parameter], words: Sequence[str], environ: Mapping[str, str]
) -> dict[str, Any]:
    """Returns the arguments that these words give a command. NotPlain where Typer must be asked, or would refuse."""
    options = {flag: each for each in known for flag in (*each.names, *each.off)}
    found: dict[str, Any] = {}
    places: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            places += rest
            break
        if len(word) < 2 or not word.startswith("-"):
            places.append(word)
            continue
        flag, equals, value = word.partition("=")
        option = options.get(flag)
        if option is None:
            raise NotPlain(word)
        if option.is_flag:
            if equals:
                raise NotPlain(word)
            found[option.name] = flag in option.names
            continue
        if not equals:
            value = next(rest, "")
            if not value or value == "--" or value.partition("=")[0] in options:
                raise NotPlain(word)
        _give(found, option, value)
    _place(found, [each for each in known if not each.is_option], places)
    for each in known:
        if each.name not in found:
            found[each.name] = _left_out(each, environ)
    return found


def _give(found: dict[str, Any], parameter: Parameter, text: str) -> None:
    value = parameter.read(text)
    if parameter.several:
        found.setdefault(parameter.name, []).append(value)
    else:
        found[parameter.name] = value


def _place(found: dict[str, Any], arguments: Sequence[Parameter], places: list[str]) -> None:
    """Give words that are no options to the arguments, in turn; one that takes several takes all that are left."""
    if sum(each.several for each in arguments) > 1 or any(each.several for each in arguments[:-1]):
        raise NotPlain("several arguments that take several words")
    left = list(places)
    for each in arguments:
        taken = left if each.several else left[:1]
        left = left[len(taken) :]
        for word in taken:
            _give(found, each, word)
    if left:
        raise NotPlain(left[0])


def _left_out(parameter: Parameter, environ: Mapping[str, str]) -> Any:
    text = next((environ[name] for name in parameter.variables if environ.get(name)), None)
    if text is not None:
        return parameter.read(text)
    if parameter.required:
        raise NotPlain(parameter.name)
    return parameter.default
