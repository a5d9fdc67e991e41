"""Proposing a program from data."""

from __future__ import annotations

import pytest

from easel.declare.program import Category, Date, Number, ProgramError, Tensor, Text
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


def test_classes_of_a_folder_are_named_with_their_pictures() -> None:
    few = propose_from_folder({"round/a.png": (4, 4, 1), "round/b.png": (4, 4, 1), "square/c.png": (4, 4, 1)})
    assert "2 classes, one for each folder: round (2), square (1)" in few.reasons
    many = propose_from_folder({f"c{k}/a.png": (4, 4, 1) for k in range(10)})
    assert any(reason.endswith("c7 (1) and 2 more") for reason in many.reasons)


def test_pictures_of_different_sizes_get_open_sides() -> None:
    proposal = propose_from_folder({"cat/1.jpg": (28, 30, 3), "dog/1.jpg": (100, 80, 1)})
    assert proposal.program.input.fields == (Tensor((None, None, 3), "image"),)


def _column(*cells: str, rows: int = 40) -> list[str]:
    return [cells[k % len(cells)] for k in range(rows)]


def test_dates_units_and_decimal_commas_become_dates_and_numbers() -> None:
    proposal = propose_from_table(
        {
            "day": [f"{1 + k % 28:02d}.{1 + k % 12:02d}.2025" for k in range(40)],
            "weight": _column("5,5 kg", "7,25 kg", ""),
            "price": _column("$ 1,200", "$ 950"),
            "label": _column("a", "b"),
        }
    )
    assert proposal.program.input.fields == (
        Date("day"),
        Number(1, "weight", optional=True),
        Number(1, "price"),
    )
    assert any("decimal commas" in reason and "in kg" in reason for reason in proposal.reasons)


def test_constant_and_identifying_columns_are_left_out_and_said_so() -> None:
    proposal = propose_from_table(
        {
            "patient_id": [str(7919 * k % 100_003) for k in range(40)],
            "site": ["Bern"] * 40,
            "code": [f"x{k}" for k in range(40)],
            "size": [str(k / 3) for k in range(40)],
            "label": _column("a", "b"),
        }
    )
    assert proposal.program.input.fields == (Number(1, "size"),)
    left_out = [reason for reason in proposal.reasons if "left out" in reason]
    assert len(left_out) == 3


def test_a_few_unknowns_do_not_turn_numbers_into_categories() -> None:
    ages = [str(20 + k % 50) if k % 9 else "unknown" for k in range(90)]
    proposal = propose_from_table({"age": ages, "label": _column("a", "b", rows=90)})
    assert proposal.program.input.fields == (Number(1, "age", optional=True),)


def test_numbered_columns_of_numbers_are_a_series() -> None:
    columns = {f"t{k}": _column("0.5", "1.5") for k in range(30)} | {"label": _column("a", "b")}
    proposal = propose_from_table(columns)
    assert proposal.program.input.pointers == ("next",)
    assert any("steps of a series" in reason for reason in proposal.reasons)


def test_several_targets_and_missing_answers_are_mentioned() -> None:
    columns = {
        "x": [str(k / 7) for k in range(40)],
        "left": [str(k / 3) for k in range(40)],
        "right": [str(k / 5) if k % 4 else "" for k in range(40)],
    }
    proposal = propose_from_table(columns, target="left, right")
    assert proposal.program.output.fields == (Number(1, "left"), Number(1, "right"))
    assert any('"right" is missing in 10 of 40 rows' in reason for reason in proposal.reasons)
    assert not proposal.fits_all
    assert propose_from_table({**columns, "right": columns["left"]}, target="left, right").fits_all


def test_pictures_below_input_and_output_are_pairs() -> None:
    sizes = {f"{side}/{k}.png": (16, 16, 1) for side in ("input", "output") for k in range(3)}
    proposal = propose_from_folder(sizes)
    assert proposal.program.output.fields == (Tensor((16, 16, 1), "picture"),)
    assert any("3 pairs" in reason for reason in proposal.reasons)


def test_numbers_of_people_are_left_out_where_each_has_one_row_and_may_be_groups_where_not() -> None:
    table = {"size": [str(k % 9) for k in range(60)], "state": ["ill", "well"] * 30}
    alone = propose_from_table({"patient": [str(10**6 + 7919 * k % 9973) for k in range(60)], **table})
    assert any('"patient" is left out' in reason for reason in alone.reasons)
    often = propose_from_table({"patient": [str(500 + k // 2) for k in range(60)], **table})
    assert any("belong together write `Category as group`" in reason for reason in often.reasons)


def test_a_picture_that_cannot_be_read_is_counted_apart_and_named() -> None:
    found = propose_from_folder({"a/1.png": (4, 4, 1), "b/2.png": (4, 4, 1), "b/torn.png": None})
    assert "all 2 pictures are 4×4×1; 1 cannot be read, such as b/torn.png" in found.reasons


def test_a_word_for_nothing_that_a_target_repeats_is_a_class() -> None:
    rows = {"x": [str(i / 7) for i in range(40)], "treatment": ["none", "drug"] * 20}
    proposal = propose_from_table(rows)
    assert proposal.program.output.fields == (Category(("drug", "none"), "treatment"),)
    assert not any("missing" in reason for reason in proposal.reasons)


@pytest.mark.parametrize("mark", ["", "NA", "NaN", "?"])
def test_what_programs_write_for_a_gap_is_no_class_of_a_target(mark: str) -> None:
    rows = {"x": [str(i / 7) for i in range(40)], "vote": ["yes", "no", "yes", mark] * 10}
    proposal = propose_from_table(rows)
    assert proposal.program.output.fields == (Category(("no", "yes"), "vote"),)
    assert any('"vote" is missing in 10 of 40 rows' in reason for reason in proposal.reasons)


def test_a_word_for_nothing_among_numbers_to_predict_is_a_gap() -> None:
    rows = {
        "x": [str(i / 7) for i in range(40)],
        "price": [*(str(i * 1.5) for i in range(36)), *["unknown"] * 4],
    }
    assert propose_from_table(rows).program.output.fields == (Number(1, "price"),)


@pytest.mark.parametrize("name", ["patient", "Patient ID", "plate_id", "subject_no"])
@pytest.mark.parametrize("people", [8, 60])
def test_a_repeated_code_of_whom_a_row_is_about_may_be_a_group(name: str, people: int) -> None:
    columns = {
        name: [f"P{1 + k % people:02d}" for k in range(90)],
        "dose": [str(k / 7) for k in range(90)],
        "y": ["a", "b"] * 45,
    }
    proposal = propose_from_table(columns)
    assert proposal.program.input.fields[0] == Category((), name)
    assert any(
        "belong together write `Category as group`" in reason and f'"{name}"' in reason
        for reason in proposal.reasons
    )


@pytest.mark.parametrize(
    ("name", "cells"),
    [("customer", ["new", "old", "lost"] * 30), ("town", [f"P{k % 30}" for k in range(90)])],
)
def test_plain_words_are_no_group(name: str, cells: list[str]) -> None:
    columns = {name: cells, "dose": [str(k / 7) for k in range(90)], "y": ["a", "b"] * 45}
    assert not any("as group" in reason for reason in propose_from_table(columns).reasons)
