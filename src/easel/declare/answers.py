"""Answers as files: a CSV beside the rows that were asked about, or pictures as PNG."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from easel.declare.cells import read_number
from easel.declare.csv_table import escaped
from easel.errors import InvalidInput


def answer_columns(answer: Mapping[str, Any], outputs: Sequence[str]) -> dict[str, Any]:
    """One answer as cells: the output under its own name, then how sure it is.

    A class: `NAME` and `p(CLASS)` for each; several: each `NAME` and `p(NAME = VALUE)`; a number: `NAME`, `NAME low`
    and `NAME high`; an error: `error`.
    """
    name = outputs[0] if outputs else "answer"
    if "error" in answer:
        return {"error": answer["error"]}
    if "each" in answer:
        each = {
            f"p({one} = {value})": share
            for one, shares in answer["each"].items()
            for value, share in shares.items()
        }
        return {**answer["outputs"], **each}
    if "label" in answer:
        shares = {f"p({label})": share for label, share in answer["probabilities"].items()}
        return {name: answer["label"], **shares}
    if "value" in answer:
        values = answer["value"] if isinstance(answer["value"], list) else [answer["value"]]
        names = (
            list(outputs) if len(outputs) == len(values) else [f"{name} {k + 1}" for k in range(len(values))]
        )
        found: dict[str, Any] = dict(zip(names, values, strict=True))
        interval = answer.get("interval")
        if interval is not None:
            pairs = interval if isinstance(answer["value"], list) else [interval]
            for one, (low, high) in zip(names, pairs, strict=True):
                found |= {f"{one} low": low, f"{one} high": high}
        return found
    if "series" in answer:
        return {f"{name} {k}": v for k, v in enumerate(_flat(answer["series"]))}
    if "tensor" in answer:
        raise InvalidInput("these answers are pictures: name a folder in place of a CSV file, -o pictures/")
    return dict(answer)


def _flat(value: Any) -> list[Any]:
    return [part for one in value for part in _flat(one)] if isinstance(value, list) else [value]


def write_answers(
    path: Path,
    rows: Sequence[Mapping[str, Any]],
    answers: Sequence[Mapping[str, Any]],
    outputs: Sequence[str],
) -> None:
    """A CSV file: each row that was asked about, and its answer beside it under names of its own."""
    made = [answer_columns(answer, outputs) for answer in answers]
    asked = list(dict.fromkeys(key for row in rows for key in row))
    answered = list(dict.fromkeys(key for one in made for key in one))
    # A file that holds the truth keeps it beside the answer.
    names = {key: f"{key} (answer)" if key in asked else key for key in answered}
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*asked, *names.values()])
        writer.writeheader()
        for number, one in enumerate(made):
            row = rows[number] if number < len(rows) else {}
            writer.writerow(safe_cells({**row, **{names[key]: value for key, value in one.items()}}))


def safe_cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a row of which a spreadsheet takes no word for a formula."""
    return {k: escaped(v) if isinstance(v, str) and not _numeric(v) else v for k, v in row.items()}


def _numeric(cell: str) -> bool:
    """A negative number begins like a formula and is none."""
    return read_number(cell) is not None


def write_pictures(folder: Path, names: Sequence[str], answers: Sequence[Mapping[str, Any]]) -> list[Path]:
    """Each answered picture as a PNG; values from 0 to 1 are stretched to 0 … 255."""
    try:
        from PIL import Image
    except ImportError:
        raise InvalidInput("writing pictures needs Pillow: pip install pillow") from None
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for number, answer in enumerate(answers):
        if "tensor" not in answer:
            raise InvalidInput(f"answer {number + 1} is no picture: write a CSV file, -o answers.csv")
        rows = answer["tensor"]
        flat = _flat(rows)
        scale = 255.0 if max(flat) <= 1.5 else 1.0
        pixels = bytes(min(255, max(0, round(value * scale))) for value in flat)
        mode = {1: "L", 3: "RGB", 4: "RGBA"}.get(len(rows[0][0]))
        if mode is None:
            raise InvalidInput(f"a picture of {len(rows[0][0])} channels cannot be written as PNG")
        name = Path(names[number]).stem if number < len(names) else f"{number + 1:04d}"
        target = folder / f"{name}.png"
        Image.frombytes(mode, (len(rows[0]), len(rows)), pixels).save(target)
        written.append(target)
    return written
