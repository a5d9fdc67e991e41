"""What is drawn of an example that is a series."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from easel.declare.friendly import read_program
from easel.declare.parse import parse_program
from easel.match.curve import MOST_POINTS, curve_of, is_series, thinned
from easel.match.raw import preview
from easel.match.read import read_object


def source_of(text: str) -> Any:
    return read_program(f"input: {text}\noutput: [no, yes]").input


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("series of number", True),
        ("tensor 60", True),
        ("tensor 60 x 1", True),
        ("tensor 3", False),
        ("image 28 x 28", False),
        ("{a: number, b: number}", False),
        ("series of category", False),
    ],
)
def test_series_and_long_vectors_are_drawn(text: str, drawn: bool) -> None:
    assert is_series(source_of(text)) is drawn


def test_each_quantity_of_a_step_is_a_line_by_its_name() -> None:
    fields = "x :: Number?, y :: Number[2], kind :: Category"
    source = parse_program(f"{{input: {{[{fields}], [next]}}, output: {{[Category[no, yes]], []}}}}").input
    steps = [{"x": 1.0, "y": [2, 3], "kind": "a"}, {"x": None, "y": [4, 5], "kind": "b"}]
    found = curve_of(source, read_object(source, steps, "input"))
    assert found.steps == 2
    assert [(line.name, line.values) for line in found.lines] == [
        ("x", (1.0, None)),
        ("y 1", (2.0, 4.0)),
        ("y 2", (3.0, 5.0)),
    ]


def test_the_line_of_plain_numbers_has_no_name() -> None:
    source = source_of("series of number")
    (line,) = curve_of(source, read_object(source, [1, 2.5], "input")).lines
    assert (line.name, line.values) == ("", (1.0, 2.5))


def test_a_long_series_is_thinned_and_keeps_its_extremes() -> None:
    values = np.sin(np.arange(10_000) / 500).astype(np.float32)
    values[4321], values[77] = 9.0, np.nan
    found = thinned(values)
    assert len(found) == MOST_POINTS
    assert max(value for value in found if value is not None) == 9.0
    assert thinned(np.full(1_000, np.nan)) == (None,) * MOST_POINTS


def test_the_line_of_a_list_says_how_many_numbers_and_between_what() -> None:
    assert preview(np.linspace(-1, 2, 60, dtype=np.float32).reshape(60, 1)) == "60 numbers from -1 to 2"
    assert preview(np.full((4, 5), np.nan)) == "4 × 5 numbers"
