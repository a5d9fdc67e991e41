"""Pictures beside numbers, several answers about one object, classes that fields share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from easel.declare.answers import answer_columns
from easel.declare.parse import parse_program
from easel.declare.program import Program, ProgramError
from easel.match.answer import answer, read_question
from easel.match.candidate import Candidate
from easel.match.encode.picture_columns import picture_columns, picture_width
from easel.match.encode.tables import fit_table
from easel.match.examples import Example
from easel.match.read import read_example
from easel.match.split import assign_folds
from easel.match.summary import strata, summarise
from easel.match.train import Conditions, Trained, train
from easel.serve.tensors import write_tensors


def trained(program: Program, examples: list[Example], family: str) -> Trained:
    folds = assign_folds(strata(program, examples))
    return train(Candidate(family), program, examples, folds, Conditions(0, 60.0, lambda: 0.0))


def test_a_picture_beside_a_number_is_learned_from_both() -> None:
    rng = np.random.default_rng(1)
    program = parse_program(
        "{input: {[photo :: Tensor[12, 12, 3], age :: Number], []}, output: {[Category], []}}"
    )
    examples = []
    for k in range(160):
        striped, old = bool(k % 2), bool(k // 2 % 2)
        photo = rng.integers(0, 60, size=(12, 12, 3))
        photo[:, ::3] += 180 * striped
        age = rng.normal(60 if old else 20, 5)
        examples.append(read_example(program, {"photo": photo, "age": age}, f"{striped}-{old}"))
    found = trained(program, examples, "lightgbm")
    assert found.measurement.quality > 0.95, (
        "neither the picture nor the number alone tells four classes apart"
    )
    assert summarise(program, examples).cells == 12 * 12 * 3 + 1


def test_pictures_become_as_many_columns_whatever_their_size_and_a_grey_one_has_all_channels() -> None:
    one = picture_columns(np.zeros((5, 9, 3), np.float32), 3)
    two = picture_columns(np.full((40, 30), 7, np.float32), 3)
    assert one.shape == two.shape == (picture_width(3),)
    assert np.isfinite(one).all()
    assert two[0] == 7
    assert np.isnan(picture_columns(None, 1)).all()
    program = parse_program("{input: {[Tensor[?, ?, 3], Number], []}, output: {[Number], []}}")
    example = read_example(program, [np.zeros((5, 9, 3)), 2.0], 1.0)
    assert fit_table(program.input, [example.input])([example.input]).shape == (1, picture_width(3) + 1)


def weather() -> tuple[Program, list[Example]]:
    program = parse_program(
        "{input: {[a :: Number, b :: Number], []}, "
        "output: {[rain :: Category[yes, no], wind :: Category like rain], []}}"
    )
    rng = np.random.default_rng(2)
    rows: list[Any] = rng.normal(size=(200, 2)).tolist()
    return program, [
        read_example(
            program, row, {"rain": "yes" if row[0] > 0 else "no", "wind": "yes" if row[1] > 0 else "no"}
        )
        for row in rows
    ]


def test_several_answers_about_one_object_are_learned_together_and_told_by_name() -> None:
    program, examples = weather()
    assert set(strata(program, examples)) == {"yes / yes", "yes / no", "no / yes", "no / no"}
    found = trained(program, examples, "logistic_regression")
    assert found.measurement.quality > 0.85
    asked = read_question(program, [{"a": 2.0, "b": -2.0}])
    ((told,), _), *_ = answer(found.model, [asked])
    assert told["outputs"] == {"rain": "yes", "wind": "no"}
    assert told["each"]["rain"]["yes"] > 0.9
    assert sum(told["each"]["wind"].values()) == pytest.approx(1, abs=1e-5)
    cells = answer_columns(told, program.output.field_names)
    assert (cells["rain"], cells["wind"]) == ("yes", "no")
    assert cells["p(wind = no)"] == told["each"]["wind"]["no"]
    tensors = {one["name"]: one["data"] for one in write_tensors(program, {}, [told])}
    assert tensors == {"rain": ["yes"], "wind": ["no"]}


def test_fields_share_the_classes_of_one_that_lists_them_before() -> None:
    program, _ = weather()
    assert str(program).count("Category[yes, no]") == 2
    with pytest.raises(ProgramError, match='no Category before this one lists its values as "rain"'):
        parse_program("{input: {[Number], []}, output: {[Category like rain], []}}")
