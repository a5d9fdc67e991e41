"""Proposing a program from data."""

from __future__ import annotations

import pytest

from easel.declare.program import Category, Number, ProgramError, Tensor, Text
from easel.declare.propose import propose_from_folder, propose_from_table


def test_a_table_becomes_columns_and_its_telling_column_the_target() -> None:
    rows = 40
    proposal = propose_from_table(
        {
            "id": [str(i) for i in range(rows)],
            "species": ["cat", "dog"] * (rows // 2),
            "weight": ["4.5", ""] * (rows // 2),
            "town": ["Bern", "Chur", "Genf", "Olten"] * (rows // 4),
            "note": [f"seen near the old mill on day {i}" for i in range(rows)],
        }
    )
    assert proposal.target == "species"
    assert proposal.program.output.fields == (Category(("cat", "dog"), "species"),)
    assert proposal.program.input.fields == (
        Number(1, "weight", optional=True),
        Category((), "town"),
        Text("note"),
    )
    assert any('"id" is left out' in reason for reason in proposal.reasons)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["0", "1", "2"] * 10, Category),
        ([str(i / 7) for i in range(30)], Number),
        ([str(i) for i in range(30)], Number),
    ],
)
def test_whole_numbers_that_repeat_are_classes_and_others_are_values(cells: list[str], kind: type) -> None:
    proposal = propose_from_table({"x": [str(i) for i in range(30)], "answer": cells})
    assert isinstance(proposal.program.output.fields[0], kind)


def test_a_target_of_one_value_is_refused() -> None:
    with pytest.raises(ProgramError, match="only one value"):
        propose_from_table({"x": ["1", "2"], "y": ["a", "a"]})


def test_an_unknown_target_lists_the_columns() -> None:
    with pytest.raises(ProgramError, match="the columns are x, y"):
        propose_from_table({"x": ["1"], "y": ["a"]}, target="z")


def test_a_folder_of_pictures_becomes_an_image_program() -> None:
    proposal = propose_from_folder({"cat/1.png": (28, 28, 1), "dog/1.PNG": (28, 28, 1), "notes.txt": None})
    assert proposal.program.input.fields == (Tensor((28, 28, 1), "image"),)
    assert proposal.program.output.fields == (Category(("cat", "dog"), "label"),)


def test_pictures_of_different_sizes_get_open_sides() -> None:
    proposal = propose_from_folder({"cat/1.jpg": (28, 30, 3), "dog/1.jpg": (100, 80, 1)})
    assert proposal.program.input.fields == (Tensor((None, None, 3), "image"),)
