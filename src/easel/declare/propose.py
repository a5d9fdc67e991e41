"""Look at data, propose a program. Pure: rows and listings in, a proposal with its reasons out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from easel.declare.program import Category, DataType, Field, Number, Program, ProgramError, Tensor, Text

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})
"""How people write that a value is missing (compared in lower case, without blanks)."""

TARGET_NAMES = ("label", "target", "class", "y", "output", "species", "diagnosis", "category")
PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")


@dataclass(frozen=True)
class Proposal:
    """A program, which column or folder level it predicts, and one sentence for each choice made."""

    program: Program
    target: str
    reasons: tuple[str, ...]


def is_missing(cell: str) -> bool:
    return cell.strip().lower() in MISSING


def number_or_none(cell: str) -> float | None:
    """The finite number that a cell holds, or None."""
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def propose_from_table(columns: Mapping[str, Sequence[str]], target: str | None = None) -> Proposal:
    """From a table's columns, as text. To predict: the named column, one with a telling name, or the last."""
    if len(columns) < 2:
        raise ProgramError("a table needs two columns at least: what to learn from and what to predict")
    reasons: list[str] = []
    names = list(columns)
    if target is None:
        telling = [name for name in names if name.strip().lower() in TARGET_NAMES]
        target = telling[0] if telling else names[-1]
        why = "its name says so" if telling else "it is the last column"
        reasons.append(f'"{target}" is what to predict: {why}')
    elif target not in columns:
        raise ProgramError(f'there is no column "{target}"; the columns are {", ".join(names)[:300]}')
    fields: list[Field] = []
    for name in names:
        if name == target:
            continue
        field, reason = _describe(name, columns[name])
        reasons.append(reason)
        if field is not None:
            fields.append(field)
    goal, reason = _describe_target(target, columns[target])
    reasons.append(reason)
    return Proposal(Program(DataType(tuple(fields)), DataType((goal,))), target, tuple(reasons))


def _describe(name: str, cells: Sequence[str]) -> tuple[Field | None, str]:
    present = [cell.strip() for cell in cells if not is_missing(cell)]
    gaps = len(cells) - len(present)
    missing = f", {gaps} missing" if gaps else ""
    if not present:
        return None, f'"{name}" is left out: it is empty'
    different = Counter(present)
    numbers = [number_or_none(cell) for cell in present]
    if all(number is not None for number in numbers):
        if name.strip().lower() in {"id", "index", "case"} and len(different) == len(cells):
            return None, f'"{name}" is left out: it only numbers the rows'
        return Number(1, name, gaps > 0), f'"{name}" is a number{missing}'
    words = sum(len(cell.split()) for cell in present) / len(present)
    if words >= 4 and len(different) > 0.5 * len(present):
        return Text(name, gaps > 0), f'"{name}" is text: {words:.0f} words on average{missing}'
    if len(different) <= max(20, len(present) // 5):
        return Category((), name, gaps > 0), f'"{name}" is a category of {len(different)} values{missing}'
    if len(different) == len(present) and words < 2:
        return None, f'"{name}" is left out: every row has another value, so nothing can be learned from it'
    return Text(name, gaps > 0), f'"{name}" is text{missing}'


def _describe_target(name: str, cells: Sequence[str]) -> tuple[Field, str]:
    present = [cell.strip() for cell in cells if not is_missing(cell)]
    different = Counter(present)
    if len(different) < 2:
        raise ProgramError(f'"{name}" holds only one value; there is nothing to predict')
    numbers = [number_or_none(cell) for cell in present]
    if all(number is not None for number in numbers):
        whole = all(number is not None and number.is_integer() for number in numbers)
        if not (whole and len(different) <= 20 and len(present) >= 5 * len(different)):
            return Number(1, name), f'"{name}" is predicted as a number: {len(different)} different values'
        values = sorted(different, key=float)
    else:
        values = sorted(different)
    if len(values) > max(50, len(present) // 2):
        raise ProgramError(
            f'"{name}" holds {len(values)} different words in {len(present)} rows: too many classes'
        )
    return Category(tuple(values), name), f'"{name}" is predicted as one of {len(values)} classes'


def propose_from_folder(pictures: Mapping[str, tuple[int, int, int] | None]) -> Proposal:
    """From relative paths `class/picture.png` and, where known, their `(height, width, channels)`."""
    inside = {path: shape for path, shape in pictures.items() if path.lower().endswith(PICTURES)}
    if not inside:
        raise ProgramError(f"no pictures here; known endings are {', '.join(PICTURES)}")
    classes = sorted({path.split("/")[0] for path in inside if "/" in path})
    if len(classes) < 2:
        raise ProgramError("expected one folder for each class with its pictures inside: two or more")
    shapes = {shape for shape in inside.values() if shape is not None}
    if len(shapes) == 1:
        shape: tuple[int | None, ...] = next(iter(shapes))
        size = f"all {len(inside)} pictures are {'×'.join(map(str, shape))}"
    else:
        channels = {shape[2] for shape in shapes}
        shape = (None, None, 1 if channels == {1} else 3)
        size = f"{len(inside)} pictures of {len(shapes) or 'unknown'} different sizes: they will be resized"
    program = Program(DataType((Tensor(shape, "image"),)), DataType((Category(tuple(classes), "label"),)))
    return Proposal(program, "folder", (size, f"{len(classes)} classes, one for each folder"))
