"""Objects that are asked about: a missing or new value is answered with a note."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from easel.declare.parse import parse_program
from easel.match.answer import answer, read_question
from easel.match.candidate import Candidate
from easel.match.encode.bits import fit_bits
from easel.match.encode.series import fit_series
from easel.match.encode.table_tensors import fit_table_tensors
from easel.match.encode.tables import fit_table
from easel.match.ensemble import EnsembleBody
from easel.match.examples import Chain, ExampleError, Single
from easel.match.model import Model
from easel.match.read import read_asked
from easel.match.targets import Values

INPUT = parse_program(
    "{input: {[age :: Number, town :: Category[Bern, Chur], note :: Text], []}, output: {[Category], []}}"
).input


@pytest.mark.parametrize(
    ("raw", "values", "says"),
    [
        ({"age": "", "town": "Bern", "note": "x"}, (None, "Bern", "x"), "object 1.age is missing"),
        ({"town": "Bern", "note": "x"}, (None, "Bern", "x"), "object 1.age is missing"),
        ({"age": 3, "town": "Genf", "note": "x"}, (3.0, None, "x"), "object 1.town is new ('Genf')"),
        ({"age": 3, "town": "Chur", "note": None}, (3.0, "Chur", ""), "object 1.note is missing"),
        ({"age": 3, "town": "Chur", "note": "x", "id": 7}, (3.0, "Chur", "x"), 'has no "id"'),
    ],
)
def test_what_is_missing_or_new_is_noted(raw: Any, values: tuple[Any, ...], says: str) -> None:
    found, notes = read_asked(INPUT, raw, "object 1")
    assert isinstance(found, Single)
    assert found.values == values
    assert len(notes) == 1
    assert says in notes[0]


def test_what_may_be_missing_is_noted_when_it_is() -> None:
    program = parse_program(
        "{input: {[age :: Number?, mark :: Category[a, none]?, day :: Date], []}, output: {[Category], []}}"
    )
    found, notes = read_asked(program.input, {"age": "", "mark": "none", "day": "2026-11-16"}, "object 3")
    assert isinstance(found, Single)
    assert found.values[:2] == (None, "none")
    assert notes == ["object 3.age is missing: answered without it"], "none is a value of its own here"


def test_a_whole_object_has_no_notes_and_a_wrong_one_is_refused() -> None:
    assert read_asked(INPUT, {"age": 3, "town": "Bern", "note": "x"}, "object 1")[1] == []
    with pytest.raises(ExampleError, match="expected a number, found 'tall'"):
        read_asked(INPUT, {"age": "tall", "town": "Bern", "note": "x"}, "object 1")


PRICES = parse_program("{input: {[town :: Category, size :: Number], []}, output: {[price :: Number], []}}")
KNOWN = [Single(("Bern", 1.0)), Single(("Chur", 2.0))]


class Zero:
    """A model that answers 0."""

    kind = "estimator"

    def predict(self, inputs: Any) -> Any:
        return np.zeros((len(inputs), 1))

    def save(self, folder: Path) -> None:
        raise AssertionError(folder)


def model(source: Any, body: Any = None, program: Any = PRICES) -> Model:
    return Model(
        program, Candidate("linear", (), 1.0, 0.5), source, Values(1, (0.0,), (1.0,)), body or Zero()
    )


@pytest.mark.parametrize("fit", [fit_table, fit_table_tensors, fit_bits])
def test_a_word_that_no_example_held_is_told_by_every_family_and_by_an_ensemble(fit: Any) -> None:
    alone = model(fit(PRICES.input, KNOWN))
    question = read_question(PRICES, [{"town": "Genf", "size": 1}, {"town": "Bern", "size": 1}])
    says = ["town: no example held Genf: answered without it"]
    assert answer(alone, [question])[0][1] == says
    together = model(None, EnsembleBody((alone, alone), (0.5, 0.5), ("a", "b")))
    assert answer(together, [question])[0][1] == says


def test_a_word_is_new_among_the_steps_of_a_series_too() -> None:
    program = parse_program("{input: {[sky :: Category], [next]}, output: {[Number], []}}")
    known = [Chain((("dry", "wet"),)), Chain((("dry", "dry"),))]
    question = read_question(program, [["dry", "hail", "dry"]])
    notes = answer(model(fit_series(program.input, known, "standard"), program=program), [question])[0][1]
    assert notes == ["sky: no example held hail: answered without it"]
