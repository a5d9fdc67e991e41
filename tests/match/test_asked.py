"""Objects that are asked about: a missing or new value is answered with a note."""

from __future__ import annotations

from typing import Any

import pytest

from easel.declare.parse import parse_program
from easel.match.examples import ExampleError, Single
from easel.match.read import read_asked

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


def test_a_whole_object_has_no_notes_and_a_wrong_one_is_refused() -> None:
    assert read_asked(INPUT, {"age": 3, "town": "Bern", "note": "x"}, "object 1")[1] == []
    with pytest.raises(ExampleError, match="expected a number, found 'tall'"):
        read_asked(INPUT, {"age": "tall", "town": "Bern", "note": "x"}, "object 1")
