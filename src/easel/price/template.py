"""Command templates: `python train.py --epoch {1,2,5} --batch-size {size:256,1024} --lr 0.001`.

A hint is a pair of braces around at least two different positive numbers; it may carry a name before a colon,
and is otherwise named after the option in front of it. Braces inside quotes, `${shell}` variables and doubled
braces `{{ }}` are ordinary text. Parsing is pure; a mistake is answered with its place and what to write
instead.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from easel.errors import InvalidInput

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_OPTION = re.compile(r"(?:^|\s)--?([A-Za-z][A-Za-z0-9_-]*)[ =]\s*\Z")
RESERVED = frozenset({"cpus", "memory_mb", "input_mb"})
"""Names of the features that every profile has besides the template's own."""


@dataclass(frozen=True)
class Hint:
    """One argument of interest and the numbers to try, as they were written (`"0.10"` stays `"0.10"`)."""

    name: str
    written: tuple[str, ...]

    @property
    def values(self) -> tuple[float, ...]:
        return tuple(float(text) for text in self.written)


@dataclass(frozen=True)
class CommandTemplate:
    """`parts` alternate: text, hint, text, ..., text; so `len(parts) == 2 * len(hints) + 1`."""

    source: str
    parts: tuple[str | Hint, ...]

    @property
    def hints(self) -> tuple[Hint, ...]:
        return tuple(part for part in self.parts if isinstance(part, Hint))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(hint.name for hint in self.hints)

    def cells(self) -> Iterator[dict[str, float]]:
        """Every combination of the hints' values, the last hint fastest."""
        for values in itertools.product(*(hint.values for hint in self.hints)):
            yield dict(zip(self.names, values, strict=True))

    def values(self, given: Mapping[str, float] | Sequence[float]) -> dict[str, float]:
        """The template's arguments from names, or in order as in `--values 100 256`; all of them, all
        positive.
        """
        if not isinstance(given, Mapping):
            names = ", ".join(self.names)
            if len(given) != len(self.hints):
                raise InvalidInput(
                    f"{len(given)} values for {len(self.hints)} hints: give one for each of {names}"
                )
            given = dict(zip(self.names, given, strict=True))
        unknown, missing = set(given) - set(self.names), set(self.names) - set(given)
        if unknown or missing:
            raise InvalidInput(
                f"the template's arguments are {', '.join(self.names) or 'none'}"
                + (f"; missing {', '.join(sorted(missing))}" if missing else "")
                + (f"; unknown {', '.join(sorted(unknown))}" if unknown else "")
            )
        for name, value in given.items():
            if not (math.isfinite(value) and value > 0):
                raise InvalidInput(
                    f"{name}={value}: give a positive number, runtime is modelled in its logarithm"
                )
        return {name: float(given[name]) for name in self.names}

    def command(self, given: Mapping[str, float] | Sequence[float]) -> str:
        """The command line with these values in place of the hints."""
        values = self.values(given)
        return "".join(p if isinstance(p, str) else _written(p, values[p.name]) for p in self.parts)


def _written(hint: Hint, value: float) -> str:
    for text, number in zip(hint.written, hint.values, strict=True):
        if number == value:
            return text
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def parse(source: str) -> CommandTemplate:
    """Reads a template. Without any hint it is a plain command, which only resources can be varied for."""
    parts: list[str | Hint] = []
    text, quote, at = "", "", 0
    while at < len(source):
        char, pair = source[at], source[at : at + 2]
        if char == "\\" and quote != "'" and len(pair) == 2:
            text, at = text + pair, at + 2
        elif quote:
            quote = "" if char == quote else quote
            text, at = text + char, at + 1
        elif char in "'\"":
            quote, text, at = char, text + char, at + 1
        elif pair in ("{{", "}}"):
            text, at = text + char, at + 2
        elif pair == "${":
            end = _closing(source, at + 1)
            text, at = text + source[at : end + 1], end + 1
        elif char == "{":
            end = _closing(source, at)
            hint = _hint(source, at, end, text, sum(isinstance(part, Hint) for part in parts) + 1)
            parts, text, at = [*parts, text, hint], "", end + 1
        elif char == "}":
            raise _mistake(source, at, "a } without its {: write }} for a brace of your own")
        else:
            text, at = text + char, at + 1
    if quote:
        raise _mistake(source, source.rindex(quote), f"the quote {quote} is never closed")
    template = CommandTemplate(source, (*parts, text))
    if not source.strip():
        raise InvalidInput(
            "the command template is empty: write the command, with {1,2,5} where a number varies"
        )
    for name in template.names:
        if template.names.count(name) > 1:
            raise InvalidInput(f"two hints are called {name}: name one of them, as in {{other:1,2,5}}")
    return template


def _closing(source: str, start: int) -> int:
    end = source.find("}", start)
    if end < 0:
        raise _mistake(source, start, "a { without its }: close it, or write {{ for a brace of your own")
    return end


def _hint(source: str, start: int, end: int, before: str, number: int) -> Hint:
    inside = source[start + 1 : end]
    name, colon, listed = inside.rpartition(":")
    name = name.strip()
    if colon and not _NAME.match(name):
        raise _mistake(
            source, start, f"{name!r} is no name: use letters, digits, - and _, as in {{epoch:1,2,5}}"
        )
    if not colon:
        option = _OPTION.search(before)
        name = option[1] if option else f"arg{number}"
    if name in RESERVED:
        raise _mistake(source, start, f"{name} is taken by the profiler: call the hint something else")
    written = tuple(text.strip() for text in listed.split(","))
    for text in written:
        try:
            value = float(text)
        except ValueError:
            advice = "a hint is a set of numbers such as {1,2,5}; quote the text or double its braces {{ }}"
            raise _mistake(source, start, f"{text!r} is not a number: {advice}") from None
        if not (math.isfinite(value) and value > 0):
            advice = "runtime is modelled in the logarithm of an argument"
            raise _mistake(source, start, f"{text} is not positive and finite: {advice}")
    if len({float(text) for text in written}) < len(written):
        raise _mistake(source, start, "the same number twice: list each once")
    if len(written) < 2:
        raise _mistake(
            source, start, f"one value teaches nothing: write {written[0]} without braces, or add a value"
        )
    return Hint(name, written)


def _mistake(source: str, at: int, message: str) -> InvalidInput:
    return InvalidInput(f"{message}\n  {source}\n  {' ' * at}^", position=at)
