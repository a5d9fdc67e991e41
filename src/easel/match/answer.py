"""Objects that somebody asks about → what a loaded model says of each, with notes; several questions at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from easel.declare.program import Program
from easel.declare.styles import Styles, restyle
from easel.match.examples import Chain, ExampleError, Object, Single, Tree, Value
from easel.match.model import Model, present
from easel.match.raw import Files, no_files, open_value
from easel.match.read import read_asked

MOST_NOTES = 100


@dataclass(frozen=True, slots=True)
class Question:
    """Objects in the program's types. `bad` are those that do not fit, by place, with what is wrong."""

    inputs: Sequence[Object]
    notes: Sequence[str]
    bad: Mapping[int, str]

    @property
    def count(self) -> int:
        return len(self.inputs) + len(self.bad)


def read_question(
    program: Program,
    objects: Sequence[Any],
    files: Files = no_files,
    *,
    skip_bad: bool = False,
    styles: Styles | None = None,
    first_number: int = 1,
) -> Question:
    """Read every object. One that does not fit refuses all, unless `skip_bad` keeps its error as its answer.

    `styles`: how the app's examples write numbers and dates.
    """
    inputs: list[Object] = []
    notes: list[str] = []
    bad: dict[int, str] = {}
    for number, raw in enumerate(objects):
        try:
            opened = restyle(program.input, "input", open_value(raw, files), styles or {})
            one, said = read_asked(program.input, opened, f"object {number + first_number}")
        except ExampleError as error:
            if not skip_bad:
                raise
            bad[number] = error.message
            continue
        inputs.append(one)
        notes += said
    return Question(inputs, notes, bad)


def answer(
    model: Model, questions: Sequence[Question], metric: str = ""
) -> list[tuple[list[dict[str, Any]], list[str]]]:
    """Answers and notes for each question, by one call of the model for all of them."""
    inputs = [one for question in questions for one in question.inputs]
    raw = model.predict(inputs) if inputs else np.zeros((0, 1))
    found = []
    at = 0
    for question in questions:
        mine = raw[at : at + len(question.inputs)]
        at += len(question.inputs)
        answers = present(model, mine, metric) if len(mine) else []
        if question.bad:
            rest = iter(answers)
            answers = [
                {"error": question.bad[k]} if k in question.bad else next(rest) for k in range(question.count)
            ]
        notes = [*question.notes, *told_words(new_words(model, question.inputs))]
        found.append((answers, notes[:MOST_NOTES]))
    return found


def new_words(model: Model, inputs: Sequence[Object]) -> dict[str, list[str]]:
    """Returns for each category the words that the model does not know."""
    found = {}
    for k, name in enumerate(model.program.input.field_names):
        known = model.known_words.get(name)
        words = set() if known is None else {v for one in inputs for v in _values(one, k)} - known
        if words:
            found[name] = sorted(words)
    return found


def told_words(new: Mapping[str, Sequence[str]]) -> list[str]:
    """A note for each category column that holds words which no example held."""
    return [
        f"{name}: no example held {', '.join(words[:5])[:200]}: answered without it"
        for name, words in new.items()
    ]


def _values(one: Object, k: int) -> Iterator[str]:
    """The words in one field of an object, of all its steps or nodes."""
    match one:
        case Single(values):
            found: Iterable[Value] = (values[k],)
        case Chain(columns):
            found = columns[k]
        case Tree():
            found = (node.values[k] for node in one.nodes())
    return (value for value in found if isinstance(value, str))
