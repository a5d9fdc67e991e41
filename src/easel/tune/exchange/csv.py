"""A study's history as CSV: one row per trial, `number, outcome, <dimensions>, measured:<quantity>…`."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from easel.declare.csv_table import escaped, unescaped
from easel.declare.dimensions import Categorical, Dimension, Ordinal, Value
from easel.declare.space import Space
from easel.errors import InvalidInput
from easel.records.study import Observation, PointOutcome

_MEASURED = "measured:"


def write_csv(path: Path, observations: Sequence[Observation], space: Space) -> None:
    """All observations; quantities in the order in which they first appear."""
    path.write_text(to_csv(observations, space), encoding="utf-8", newline="")


def to_csv(observations: Sequence[Observation], space: Space) -> str:
    quantities = list(dict.fromkeys(name for o in observations for name in o.values))
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(map(escaped, _header(space, quantities)))
    writer.writerows(_row(o, space, quantities) for o in observations)
    return text.getvalue()


def append_csv(path: Path, observation: Observation, space: Space) -> None:
    """One more row. A quantity that the file has no column for yet makes the file be written anew."""
    if not path.exists():
        write_csv(path, [observation], space)
        return
    with path.open(newline="", encoding="utf-8") as file:
        header = [unescaped(name) for name in next(csv.reader(file))]
    quantities = [name.removeprefix(_MEASURED) for name in header if name.startswith(_MEASURED)]
    if set(observation.values) - set(quantities):
        write_csv(path, [*read_csv(path, space), observation], space)
        return
    with path.open("a", newline="", encoding="utf-8") as file:
        csv.writer(file).writerow(_row(observation, space, quantities))


def read_csv(path: Path, space: Space) -> list[Observation]:
    """The observations of a file; points are not checked against the space, so that a warm start may pick."""
    with path.open(newline="", encoding="utf-8") as file:
        return from_csv(file.read(), space, path.name)


def from_csv(text: str, space: Space, name: str = "the file") -> list[Observation]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    reader.fieldnames = [unescaped(column) for column in reader.fieldnames or ()]
    missing = [d.name for d in space.dimensions if d.name not in (reader.fieldnames or ())]
    if missing:
        raise InvalidInput(f"{name} lacks the columns {', '.join(missing)}")
    return [_observation(row, space, name, line) for line, row in enumerate(reader, start=2)]


def _header(space: Space, quantities: Iterable[str]) -> list[str]:
    return ["number", "outcome", *(d.name for d in space.dimensions), *(_MEASURED + q for q in quantities)]


def _row(o: Observation, space: Space, quantities: Iterable[str]) -> list[str]:
    number = "" if o.number is None else str(o.number)
    point = [_text(o.point[d.name]) if d.name in o.point else "" for d in space.dimensions]
    return [
        number,
        o.outcome.value,
        *point,
        *(repr(o.values[q]) if q in o.values else "" for q in quantities),
    ]


def _text(value: Value) -> str:
    return repr(value) if isinstance(value, int | float) else escaped(value)


def _observation(row: dict[str, str], space: Space, file: str, line: int) -> Observation:
    try:
        point = {d.name: _value(d, row[d.name]) for d in space.dimensions if row[d.name] != ""}
        values = {
            name.removeprefix(_MEASURED): float(text)
            for name, text in row.items()
            if name and name.startswith(_MEASURED) and text not in ("", None)
        }
        number = int(row["number"]) if row.get("number") else None
        outcome = PointOutcome(row.get("outcome") or PointOutcome.COMPLETED)
    except ValueError as error:
        raise InvalidInput(f"{file}, line {line}: {error}") from error
    return Observation(point, values, outcome, number)


def _value(dimension: Dimension, text: str) -> Value:
    if isinstance(dimension, Categorical | Ordinal):
        for value in dimension.values:
            if _text(value) == text:
                return value
        try:
            number = float(text)
        except ValueError:
            return text
        try:
            return dimension.check(number)
        except InvalidInput:
            return number
    return int(text) if dimension.type == "integer" else float(text)
