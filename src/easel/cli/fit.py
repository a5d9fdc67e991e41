"""Which columns of a table fit a window, and how wide each of them may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from unicodedata import east_asian_width

GAP = 2
"""Blanks between two columns."""
NEAR = 6
"""A text is cut at a blank so near to the end; farther away too much would be lost."""
LEAST = 14
"""A text cut shorter than this tells nothing: its column is left out instead."""


@dataclass(frozen=True, slots=True)
class TableFit:
    """`widths` has an entry for each shown column."""

    shown: tuple[int, ...]
    widths: tuple[int, ...]


def fit_columns(widths: Sequence[int], texts: Sequence[bool], kept: Sequence[bool], room: int) -> TableFit:
    """Returns the columns that stand side by side within `room`.

    `texts` says which columns may be cut short; `kept` which are never left out. The others leave from the right.
    """
    shown = list(range(len(widths)))
    while True:
        excess = sum(widths[i] for i in shown) + GAP * (len(shown) - 1) - room
        spare = sum(max(0, widths[i] - LEAST) for i in shown if texts[i])
        droppable = [i for i in shown if not kept[i]]
        if excess <= spare or not droppable:
            return TableFit(tuple(shown), _cut(widths, texts, shown, excess))
        shown.remove(droppable[-1])


def shorten(text: str, width: int) -> str:
    """Returns the text in at most `width` characters, cut between words where one is near, with an ellipsis."""
    if len(text) <= width:
        return text
    if width <= 1:
        return "…"[:width]
    head = text[: width - 1]
    blank = head.rfind(" ")
    near = max(width // 2, width - NEAR)
    return (head[:blank] if blank >= near else head).rstrip(" ,;:") + "…"


def padded(text: str, width: int) -> str:
    """Returns the text with blanks behind it up to `width` places; a wide letter takes two of them."""
    if text.isascii():
        return text.ljust(width)
    return text + " " * (width - sum(2 if east_asian_width(c) in "WF" else 1 for c in text))


def fold(text: str, width: int, *, words: bool = False) -> list[str]:
    """Returns the text in lines of at most `width`; with `words` a line ends between two words where it can."""
    found: list[str] = []
    for line in text.splitlines() or [""]:
        while len(line) > width:
            blank = line.rfind(" ", 1, width + 1) if words else -1
            end = blank if blank > 0 else width
            found.append(line[:end])
            line = line[end + (blank > 0) :]
        found.append(line)
    return found


def _cut(widths: Sequence[int], texts: Sequence[bool], shown: Sequence[int], excess: int) -> tuple[int, ...]:
    """The widest texts give first, a character at a time, until the table fits."""
    found = {i: widths[i] for i in shown}
    while excess > 0:
        wide = [i for i in shown if texts[i] and found[i] > LEAST]
        if not wide:
            break
        found[max(wide, key=lambda i: found[i])] -= 1
        excess -= 1
    return tuple(found[i] for i in shown)
