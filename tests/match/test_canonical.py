"""One example is one example, and near-duplicates share a fold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from easel.declare.parse import parse_program
from easel.match.canonical import example_digest, near_key
from easel.match.examples import ExampleError
from easel.match.raw import Picture
from easel.match.read import read_example
from easel.match.split import MOST_NEAR, assign_folds

TABLE = parse_program(
    "{input: {[age :: Number, size :: Number?, town :: Category, seen :: Date], []}, "
    "output: {[label :: Category], []}}"
)
ROW = {"age": "71", "size": "0.1", "town": "Bern", "seen": "2026-11-16"}


@pytest.mark.parametrize(
    "same",
    [
        {"age": 71.0, "size": 0.1, "town": "Bern", "seen": "16.11.2026"},
        {"age": 71, "size": float(np.float32(0.1)), "town": " Bern", "seen": "2026-11-16T00:00:00"},
        ["71.0", "0.10", "Bern", "11/16/2026"],
    ],
)
def test_a_row_is_one_example_in_whatever_form_it_comes(same: Any) -> None:
    assert example_digest(TABLE, same, {"label": "a"}) == example_digest(TABLE, ROW, "a")


def test_rows_that_differ_are_two_examples() -> None:
    digests = {
        example_digest(TABLE, ROW, "a"),
        example_digest(TABLE, ROW, "b"),
        example_digest(TABLE, {**ROW, "size": None}, "a"),
        example_digest(TABLE, {**ROW, "age": 1_700_000_123}, "a"),
        example_digest(TABLE, {**ROW, "age": 1_700_000_124}, "a"),
    }
    assert len(digests) == 5


def test_a_picture_is_named_by_its_content_without_being_decoded() -> None:
    program = parse_program("{input: {[Tensor[?, ?, 3]], []}, output: {[Category], []}}")
    here, there = Picture(b"not a picture", path="/a/1.png"), Picture(b"not a picture", path="/b/2.png")
    assert example_digest(program, here, "a") == example_digest(program, there, "a")


def test_series_fed_as_lists_and_as_arrays_are_one() -> None:
    program = parse_program("{input: {[Tensor[1]], [next]}, output: {[Category], []}}")
    steps = [0.5, 1.25, -0.0]
    assert example_digest(program, steps, "a") == example_digest(
        program, np.array([[0.5], [1.25], [0.0]], dtype=np.float32), "a"
    )


def test_near_duplicates_share_a_key_and_a_fold_until_they_are_many() -> None:
    def near(size: float) -> str | None:
        return near_key(read_example(TABLE, {**ROW, "size": size}, "a"))

    assert near(12.3401) == near(12.3402) != near(13.0)
    folds = assign_folds(["a"] * 4, near=["k", None, "k", "k"])
    assert len({folds[0], folds[2], folds[3]}) == 1
    assert assign_folds(["a"], near=["k"], homes={"k": [3]}) == [3]
    assert len(set(assign_folds(["a"] * 40, near=["k"] * 40))) == 5
    assert set(assign_folds(["a"] * MOST_NEAR, near=["k"] * MOST_NEAR)) == {0}


def test_inputs_of_little_content_have_no_near_duplicates() -> None:
    short = parse_program("{input: {[Number, Number], []}, output: {[Category], []}}")
    assert near_key(read_example(short, [1, 2], "a")) is None


def test_a_picture_beside_numbers_is_one_example_by_name_in_order_and_however_it_is_spelled() -> None:
    program = parse_program(
        "{input: {[photo :: Tensor[?, ?, 3], age :: Number], []}, output: {[Category], []}}"
    )
    picture = Picture(b"not a picture", path="/a/1.png")
    forms = [
        {"photo": picture, "age": 71},
        {"age": "71.0", "photo": picture},
        [picture, 71],
        (picture, 71.0),
        [picture, "71"],
    ]
    assert len({example_digest(program, form, "a") for form in forms}) == 1
    with pytest.raises(ExampleError, match="expected 2 values"):
        example_digest(program, [picture], "a")
