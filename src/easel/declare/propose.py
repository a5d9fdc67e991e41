"""Look at data, propose a program. Pure: rows and listings in, a proposal with its reasons out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from easel.declare.cells import MARKS, is_missing, moment_form, read_number, style_of
from easel.declare.counted import counted
from easel.declare.program import Category, DataType, Date, Field, Number, Program, ProgramError, Tensor, Text

TARGET_NAMES = ("label", "target", "class", "y", "output", "species", "diagnosis", "category")
PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")
SHORTEST_SERIES = 12
"""So many numbered columns of numbers (t0, t1, …) are the steps of a series rather than a table."""
_NUMBERED = re.compile(r"(?P<stem>.*?)[_ .\-]?(?P<number>\d+)\Z")
_NUMBERED_TARGET = re.compile(r"(?:y|target|output|label)[_ ]?\d+\Z", re.IGNORECASE)
_ID_NAME = re.compile(r"(?:.*[_ .\-])?(?:id|uuid|guid|index|case|nr|no|key|rowid|row)\Z|.*[a-z]I[dD]\Z")
_WHO_NAME = re.compile(
    r"(?:patient|customer|client|subject|person|user|student|participant|account|employee|member|donor|household)"
    r"[_ .\-]?(?:id|nr|no|number|code|key)?\Z",
    re.IGNORECASE,
)
"""Whom a row is about: told apart by a number, that number means nothing by itself."""


MOST_NAMED = 8
"""So many classes are named where a folder of pictures is looked at."""


_SKIP = "feed with --skip-bad to leave them out"


@dataclass(frozen=True)
class Proposal:
    """A program, which column or folder level it predicts, and one sentence for each choice made."""

    program: Program
    target: str
    reasons: tuple[str, ...]

    @property
    def fits_all(self) -> bool:
        """Whether every row that was looked at is an example of the program."""
        return not any(reason.endswith(_SKIP) for reason in self.reasons)


def propose_from_table(columns: Mapping[str, Sequence[str]], target: str | None = None) -> Proposal:
    """Proposes a program from a table's columns, as text.

    To predict: the named column (or several, with commas between), one with a telling name, or the last.
    """
    if len(columns) < 2:
        raise ProgramError("a table needs two columns at least: what to learn from and what to predict")
    reasons: list[str] = []
    targets = _targets(columns, target, reasons)
    names = [name for name in columns if name not in targets]
    if not names:
        raise ProgramError("every column is to be predicted: there is nothing left to learn from")
    source = _series(names, columns, reasons) or _table(names, columns, reasons)
    goals = []
    for name in targets:
        goal, reason = _describe_target(name, columns[name])
        goals.append(goal)
        reasons.append(reason)
        gaps = len(columns[name]) - len(_answers(columns[name]))
        if gaps:
            reasons.append(f'"{name}" is missing in {gaps} of {len(columns[name])} rows: {_SKIP}')
    return Proposal(Program(source, DataType(tuple(goals))), ", ".join(targets), tuple(reasons))


def _targets(columns: Mapping[str, Sequence[str]], target: str | None, reasons: list[str]) -> list[str]:
    names = list(columns)
    if target is not None:
        wanted = [target] if target in columns else [part.strip() for part in target.split(",")]
        unknown = next((name for name in wanted if name not in columns), None)
        if unknown is not None:
            raise ProgramError(f'there is no column "{unknown}"; the columns are {", ".join(names)[:300]}')
        return list(dict.fromkeys(wanted))
    telling = [name for name in names if name.strip().lower() in TARGET_NAMES]
    numbered = [name for name in names if _NUMBERED_TARGET.match(name.strip())]
    if telling:
        reasons.append(f'"{telling[0]}" is what to predict: its name says so')
        return telling[:1]
    if len(numbered) > 1 and len(numbered) < len(names):
        reasons.append(f"{', '.join(numbered)[:200]} are what to predict: their names say so")
        return numbered
    reasons.append(f'"{names[-1]}" is what to predict: it is the last column')
    return names[-1:]


def _series(
    names: Sequence[str], columns: Mapping[str, Sequence[str]], reasons: list[str]
) -> DataType | None:
    """A chain, where the columns are the numbered steps of one series."""
    found = [_NUMBERED.match(name.strip()) for name in names]
    if len(names) < SHORTEST_SERIES or not all(found):
        return None
    stems = {match["stem"] for match in found if match is not None}
    numbers = [int(match["number"]) for match in found if match is not None]
    in_order = all(b - a == 1 for a, b in pairwise(numbers))
    if len(stems) != 1 or not in_order:
        return None
    if any(read_number(cell) is None for name in names for cell in columns[name] if not is_missing(cell)):
        return None
    reasons.append(
        f"{names[0]} … {names[-1]} are {len(names)} numbered columns of numbers: the steps of a series"
    )
    return DataType((Tensor((1,)),), ("next",))


def _table(names: Sequence[str], columns: Mapping[str, Sequence[str]], reasons: list[str]) -> DataType:
    fields: list[Field] = []
    for name in names:
        field, reason = _describe(name, columns[name])
        reasons.append(reason)
        if field is not None:
            fields.append(field)
    if not fields:
        raise ProgramError(f"nothing is left to learn from: {'; '.join(reasons)[:600]}")
    return DataType(tuple(fields))


def _describe(name: str, cells: Sequence[str]) -> tuple[Field | None, str]:
    present = [cell.strip() for cell in cells if not is_missing(cell)]
    gaps = len(cells) - len(present)
    missing = f", {gaps} missing" if gaps else ""
    if not present:
        return None, f'"{name}" is left out: it is empty'
    different = Counter(present)
    if len(different) == 1 and not gaps and len(present) > 1:
        return None, f'"{name}" is left out: it is {present[0][:40]!r} in every row'
    number = _as_number(name, cells, different, gaps)
    if number is not None:
        return number
    form = moment_form(present)
    if form is not None:
        return Date(name, gaps > 0), f'"{name}" is a date{missing}'
    words = sum(len(cell.split()) for cell in present) / len(present)
    if words >= 4 and len(different) > 0.5 * len(present):
        return Text(name, gaps > 0), f'"{name}" is text: {words:.0f} words on average{missing}'
    if len(different) == len(present) and len(present) > 20 and (words < 2 or _ID_NAME.match(name.strip())):
        return None, f'"{name}" is left out: it names the rows, every one has another value'
    if len(different) < len(present) and _is_code(name, different):
        told = _may_be_group(name, len(different))
        return Category((), name, gaps > 0), f'"{name}" is a category{missing}, {told}'
    if len(different) <= max(20, len(present) // 2):
        many = counted(len(different), "value")
        return Category((), name, gaps > 0), f'"{name}" is a category of {many}{missing}'
    return Text(name, gaps > 0), f'"{name}" is text{missing}'


def _as_number(
    name: str, cells: Sequence[str], different: Counter[str], gaps: int
) -> tuple[Field | None, str] | None:
    """A column of numbers, though a few words stand among them; nothing where it is none."""
    style = style_of(cells)
    present = [cell for cell in cells if not is_missing(cell)]
    if style is None:
        return None
    numbers = [read_number(cell, style) for cell in present]
    strange = [cell.strip() for cell, number in zip(present, numbers, strict=True) if number is None]
    if strange and (len(strange) > 0.1 * len(present) or any(c.isdigit() for cell in strange for c in cell)):
        return None
    found = [number for number in numbers if number is not None]
    if _names_rows(name, found, len(cells)):
        return None, f'"{name}" is left out: it only numbers the rows'
    how = [f"{gaps} missing"] if gaps else []
    if _is_who(name, found):
        how.append(_may_be_group(name, len(different)))
    if style.decimal == ",":
        how.append("with decimal commas")
    if style.unit:
        how.append(f"in {style.unit}")
    if strange:
        how.append(f"but {len(strange)} rows hold words such as {strange[0][:30]!r}: {_SKIP}")
    return Number(1, name, gaps > 0), f'"{name}" is a number{"".join(f", {h}" for h in how)}'


def _names_rows(name: str, numbers: Sequence[float], rows: int) -> bool:
    """Whole numbers that are all different, under a name that says so, or counting 1, 2, 3, …"""
    if len(numbers) < max(3, rows) or not all(number.is_integer() for number in numbers):
        return False
    if len(set(numbers)) < len(numbers):
        return False
    named = _ID_NAME.match(name.strip()) or _ID_NAME.match(name.strip().lower()) or _is_who(name, numbers)
    counts = rows > 20 and all(b - a == 1 for a, b in pairwise(numbers))
    return bool(named) or (counts and name.strip().lower() in {"", "unnamed: 0", "n", "#", "number"})


def _is_who(name: str, numbers: Sequence[float]) -> bool:
    """Whether whole numbers stand for people, by the column's name; small ones may be counts."""
    whole = bool(numbers) and all(number.is_integer() for number in numbers)
    return whole and _WHO_NAME.match(name.strip()) is not None and len(set(numbers)) > 20


def _answers(cells: Sequence[str]) -> list[str]:
    """The cells of a column to predict that hold an answer: among words, a repeated `none` or `unknown` is one."""
    given = [cell.strip() for cell in cells if not is_missing(cell)]
    style = style_of(given)
    if given and style is not None and all(read_number(cell, style) is not None for cell in given):
        return given
    words = Counter(cell.strip() for cell in cells if cell.strip().lower() not in MARKS)
    return [cell.strip() for cell in cells if not is_missing(cell) or words[cell.strip()] > 1]


def _is_code(name: str, different: Collection[str]) -> bool:
    """Whether words stand for people or things that rows may have in common: codes, under a name that says so."""
    named = (
        _WHO_NAME.match(name.strip()) or _ID_NAME.match(name.strip()) or _ID_NAME.match(name.strip().lower())
    )
    codes = sum(any(c.isdigit() for c in word) and len(word.split()) == 1 for word in different)
    return named is not None and len(different) > 2 and codes > 0.8 * len(different)


def _may_be_group(name: str, different: int) -> str:
    return f"{different} different ones: where rows of one {name} belong together write `Category as group`"


def _describe_target(name: str, cells: Sequence[str]) -> tuple[Field, str]:
    present = _answers(cells)
    different = Counter(present)
    if len(different) < 2:
        raise ProgramError(f'"{name}" holds only one value; there is nothing to predict')
    style = style_of(cells)
    numbers = [None if style is None else read_number(cell, style) for cell in present]
    if all(number is not None for number in numbers):
        whole = all(number is not None and number.is_integer() for number in numbers)
        if not (whole and len(different) <= 20 and len(present) >= 5 * len(different)):
            many = counted(len(different), "different value")
            return Number(1, name), f'"{name}" is predicted as a number: {many}'
        values = sorted(different, key=lambda cell: read_number(cell, style) or 0.0)
    else:
        values = sorted(different)
    if len(values) > max(50, len(present) // 2):
        raise ProgramError(
            f'"{name}" holds {len(values)} different words in {len(present)} rows: too many classes'
        )
    rare = different.most_common()[-1]
    seldom = f', of which "{rare[0][:40]}" has only {rare[1]}' if rare[1] < 0.05 * len(present) else ""
    many = counted(len(values), "class")
    return Category(tuple(values), name), f'"{name}" is predicted as one of {many}{seldom}'


def propose_from_folder(pictures: Mapping[str, tuple[int, int, int] | None]) -> Proposal:
    """Proposes a program from relative paths `class/picture.png` and, where known, `(height, width, channels)`.

    Pictures below `input/` and `output/` are pairs.
    """
    inside = {path: shape for path, shape in pictures.items() if path.lower().endswith(PICTURES)}
    if not inside:
        raise ProgramError(f"no pictures here; known endings are {', '.join(PICTURES)}")
    classes = sorted({path.split("/")[0] for path in inside if "/" in path})
    if classes == ["input", "output"]:
        return _picture_pairs(inside)
    if len(classes) < 2:
        raise ProgramError("expected one folder for each class with its pictures inside: two or more")
    shape, size = _common_shape(inside)
    program = Program(DataType((Tensor(shape, "image"),)), DataType((Category(tuple(classes), "label"),)))
    count = Counter(path.split("/")[0] for path in inside if "/" in path)
    named = ", ".join(f"{name} ({count[name]})" for name in classes[:MOST_NAMED])
    more = f" and {len(classes) - MOST_NAMED} more" if len(classes) > MOST_NAMED else ""
    return Proposal(program, "folder", (size, f"{len(classes)} classes, one for each folder: {named}{more}"))


def _picture_pairs(pictures: Mapping[str, tuple[int, int, int] | None]) -> Proposal:
    sides = {
        side: {path: shape for path, shape in pictures.items() if path.startswith(f"{side}/")}
        for side in ("input", "output")
    }
    stems = [{path.split("/", 1)[1].rpartition(".")[0] for path in side} for side in sides.values()]
    paired = len(stems[0] & stems[1])
    if not paired:
        raise ProgramError("no picture below input/ has one of the same name below output/")
    before, after = _common_shape(sides["input"]), _common_shape(sides["output"])
    reasons = [f"input: {before[1]}", f"output: {after[1]}", f"{counted(paired, 'pair')} of the same name"]
    alone = len(stems[0] ^ stems[1])
    if alone:
        reasons.append(f"left out, as without a partner: {counted(alone, 'picture')}")
    program = Program(DataType((Tensor(before[0], "image"),)), DataType((Tensor(after[0], "picture"),)))
    return Proposal(program, "output/", tuple(reasons))


def _common_shape(
    pictures: Mapping[str, tuple[int, int, int] | None],
) -> tuple[tuple[int | None, ...], str]:
    """The shape of all of them, open where they differ, and how to say so."""
    shapes = {shape for shape in pictures.values() if shape is not None}
    unread = sorted(path for path, shape in pictures.items() if shape is None) if shapes else []
    broken = f"; {len(unread)} cannot be read, such as {unread[0]}" if unread else ""
    count = len(pictures) - len(unread)
    if len(shapes) == 1:
        shape = next(iter(shapes))
        return shape, f"all {count} pictures are {'×'.join(map(str, shape))}{broken}"
    channels = {shape[2] for shape in shapes}
    size = f"{counted(count, 'picture')} of {len(shapes) or 'unknown'} different sizes: they will be resized{broken}"
    return (None, None, 1 if channels == {1} else 3), size
