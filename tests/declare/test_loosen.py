"""A program may change as long as what was fed still fits."""

from __future__ import annotations

import pytest

from easel.declare.loosen import loosened
from easel.declare.parse import parse_program
from easel.declare.program import Program, ProgramError


def program(age: str = "Number", label: str = "Category[a, b]", more: str = "") -> Program:
    return parse_program(f"{{input: {{[age :: {age}{more}], []}}, output: {{[label :: {label}], []}}}}")


@pytest.mark.parametrize(
    "after", [program(age="Number?"), program(label="Category[a, b, c]"), program(label="Category")]
)
def test_values_may_become_optional_and_classes_may_be_added(after: Program) -> None:
    assert loosened(program(), after) == after


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (program(age="Number?"), program(), "Number\\? cannot become"),
        (program(), program(label="Category[a]"), "what was fed must still fit"),
        (program(), program(age="Text"), "input.age"),
        (program(), program(more=", size :: Number"), "declare another app"),
        (program(label="Category"), program(), "output.label"),
    ],
)
def test_what_would_leave_examples_out_is_refused(before: Program, after: Program, says: str) -> None:
    with pytest.raises(ProgramError, match=says):
        loosened(before, after)
