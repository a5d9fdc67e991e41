"""Which column of a table is which."""

from __future__ import annotations

import pytest

from easel.declare.friendly import read_program
from easel.declare.pairs import objects_of_rows, pairs_of_rows
from easel.errors import InvalidInput


def test_columns_go_by_their_names() -> None:
    program = read_program("input: {size: number, town: category}\noutput: {sold: [no, yes]}")
    rows = [{"sold": "yes", "town": "Bern", "size": "3", "note": "x"}]
    assert list(pairs_of_rows(program, ["sold", "town", "size", "note"], rows)) == [
        ({"size": "3", "town": "Bern"}, "yes")
    ]


def test_without_names_the_telling_column_is_the_answer_and_the_others_are_the_vector() -> None:
    program = read_program("{input: {[Tensor[2]], []}, output: {[Category], []}}")
    rows = [{"a": "1", "label": "cat", "b": "2.5"}]
    assert list(pairs_of_rows(program, ["a", "label", "b"], rows)) == [([1.0, 2.5], "cat")]
    assert list(objects_of_rows(program, ["a", "b"], [{"a": "1", "b": "2"}])) == [[1.0, 2.0]]


def test_the_columns_of_a_series_are_its_steps_and_blanks_at_its_end_are_left_out() -> None:
    program = read_program("{input: {[Tensor[1]], [next]}, output: {[Category], []}}")
    rows = [{"t0": "1", "t1": "2", "t2": "", "y": "up"}]
    assert list(pairs_of_rows(program, ["t0", "t1", "t2", "y"], rows)) == [([1.0, 2.0], "up")]


@pytest.mark.parametrize(
    ("program", "header", "missing"),
    [
        ("input: {size: number}\noutput: {sold: [no, yes]}", ["size"], "sold"),
        ("input: {size: number, town: category}\noutput: {sold: [no, yes]}", ["size", "sold"], "town"),
    ],
)
def test_a_missing_column_is_named(program: str, header: list[str], missing: str) -> None:
    with pytest.raises(InvalidInput, match=f"no column '{missing}'"):
        list(pairs_of_rows(read_program(program), header, []))
