"""What a scoring job runs on a device: one model over every object of some files, batch by batch."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from easel.declare.answers import answer_columns, safe_cells, write_pictures
from easel.declare.parse import parse_program
from easel.declare.program import Program
from easel.declare.styles import read_styles
from easel.errors import InvalidInput
from easel.flow.apps.rows import READ, AskedRow, CsvWriter, objects_in
from easel.match.answer import new_words, told_words
from easel.match.encode.images import PictureEncoder
from easel.match.examples import ExampleError
from easel.match.model import Model, load_model, present
from easel.match.raw import open_value
from easel.match.read import read_asked
from easel.match.targets import Classes, Values

__trials__ = ("score",)
BATCH = 500
MOST_TOLD = 20
ERROR = "error"


class ScoringContext(Protocol):
    """The part of a trial's context that scoring needs."""

    @property
    def arguments(self) -> Mapping[str, Any]: ...
    @property
    def input(self) -> Path: ...
    @property
    def output(self) -> Path: ...


def score(place: ScoringContext) -> dict[str, Any]:
    """Answer every object; leave the answers, and which model gave them, in the output.

    Arguments: `model` (the folder of the model below the input), `metric`, `styles` (how the app's columns write
    numbers and dates), `about` (app, model set, candidate, score and source, as they are to be recorded). An object
    that does not fit is answered with its error.
    """
    wanted = place.arguments
    home = place.input / str(wanted["model"]).lstrip("/")
    model = load_model(home / "model")
    program = parse_program(wanted["about"]["program"])
    files = [
        path
        for path in sorted(place.input.rglob("*"))
        if path.is_file() and path.suffix.lower() in READ and home not in path.parents
    ]
    if not files:
        raise InvalidInput(f"there is nothing to score: files that end in {', '.join(READ)} are read")
    began = time.monotonic()
    told = _Told()
    asked = objects_in(place.input, files, program, read_styles(wanted.get("styles")), told.note)
    answers = _answered(model, program, asked, str(wanted["metric"]), told)
    if isinstance(model.target, Classes | Values):
        written = _write_table(place.output, model, answers)
    elif isinstance(model.target, PictureEncoder):
        written = _write_pictures(place.output, answers)
    else:
        written = _write_lines(place.output, answers)
    about = {
        **wanted["about"],
        "objects": told.objects,
        "errors": told.errors,
        "first_errors": told.first,
        "notes": told.notes,
        "predictions": written,
        "seconds": time.monotonic() - began,
    }
    (place.output / "scored.json").write_text(json.dumps(about, indent=1), encoding="utf-8")
    return about


class _Told:
    """What is said of the objects as they go by."""

    def __init__(self) -> None:
        self.objects = self.errors = 0
        self.first: list[str] = []
        self._notes: list[str] = []
        self._new: dict[str, list[str]] = {}

    @property
    def notes(self) -> list[str]:
        """New words first: one sentence for a column, whatever its rows."""
        return [*told_words(self._new), *self._notes][:MOST_TOLD]

    def error(self, words: str) -> None:
        self.errors += 1
        if len(self.first) < MOST_TOLD:
            self.first.append(words)

    def note(self, words: Sequence[str]) -> None:
        self._notes += words[: MOST_TOLD - len(self._notes)]

    def new(self, words: Mapping[str, Sequence[str]]) -> None:
        for name, some in words.items():
            seen = self._new.get(name, [])
            self._new[name] = list(dict.fromkeys((*seen, *some)))[:MOST_TOLD]


def _answered(
    model: Model, program: Program, asked: Iterator[AskedRow], metric: str, told: _Told
) -> Iterator[tuple[AskedRow, dict[str, Any]]]:
    while batch := list(islice(asked, BATCH)):
        inputs, bad = [], {}
        for number, one in enumerate(batch):
            told.objects += 1
            try:
                read, notes = read_asked(program.input, open_value(one.value), one.where)
            except ExampleError as error:
                bad[number] = error.message
                told.error(error.message)
                continue
            inputs.append(read)
            told.note(notes)
        told.new(new_words(model, inputs))
        answers = iter(present(model, model.predict(inputs), metric) if inputs else [])
        for number, one in enumerate(batch):
            yield one, {ERROR: bad[number]} if number in bad else next(answers)


def _write_table(output: Path, model: Model, answers: Iterator[tuple[AskedRow, dict[str, Any]]]) -> str:
    outputs = model.program.output.field_names
    names: dict[str, str] = {}
    writer: CsvWriter | None = None
    target = output / "predictions.csv"
    try:
        for one, answer in answers:
            if writer is None:
                asked = list(one.cells)
                # A file that holds the truth keeps it beside the answer.
                names = {
                    key: f"{key} (answer)" if key in one.cells else key
                    for key in (*_columns(model, outputs), ERROR)
                }
                writer = CsvWriter(target, [*asked, *names.values()])
            cells = {names[key]: value for key, value in answer_columns(answer, outputs).items()}
            writer.write(safe_cells({**one.cells, **cells}))
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        raise InvalidInput("the files hold no row: there is nothing to score")
    return target.name


def _columns(model: Model, outputs: Sequence[str]) -> list[str]:
    """The names of an answer's cells, before the first answer."""
    width = len(model.target.names) if isinstance(model.target, Classes) else model.target.width
    some = present(model, np.full((1, width), 1.0 / width))[0]
    return list(answer_columns(some, outputs))


def _write_pictures(output: Path, answers: Iterator[tuple[AskedRow, dict[str, Any]]]) -> str:
    folder = output / "predictions"
    for number, (one, answer) in enumerate(answers, start=1):
        if ERROR not in answer:
            name = str(one.cells.get("file", "")).rpartition(".")[0].replace("/", "_") or f"{number:06d}"
            write_pictures(folder, [f"{name}.png"], [answer])
    return f"{folder.name}/"


def _write_lines(output: Path, answers: Iterator[tuple[AskedRow, dict[str, Any]]]) -> str:
    target = output / "predictions.jsonl"
    with target.open("w", encoding="utf-8") as file:
        for one, answer in answers:
            file.write(json.dumps({"where": one.where, **answer}) + "\n")
    return target.name
