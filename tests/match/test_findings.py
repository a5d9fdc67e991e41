"""Which inputs matter, where a model fails, what would help: measured on examples that it did not see."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

from easel.declare.parse import parse_program
from easel.errors import InvalidInput
from easel.match.candidate import Candidate
from easel.match.examples import Example, Single
from easel.match.findings import calibration_bins, examine
from easel.match.importance import dealt, parts_of
from easel.match.learning_curve import continued, foretell
from easel.match.train import Conditions
from easel.match.weak_spots import worst_groups

CLASSES = parse_program(
    "{input: {[size :: Number, town :: Category, noise :: Number?], []}, output: {[Category[no, yes]], []}}"
)
NUMBERS = parse_program("{input: {[x :: Number[3]], []}, output: {[Number], []}}")
LINEAR = Candidate("logistic_regression", (("C", 1.0),))


def table(n: int, seed: int = 0) -> list[Example]:
    """Size decides, except in Basel, where the answer is a coin."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(n):
        size, noise, town = rng.normal(), rng.normal(), str(rng.choice(["Bern", "Basel", "Genf"]))
        yes = rng.random() < 0.5 if town == "Basel" else size > 0
        made.append(Example(Single((float(size), town, float(noise))), Single(("yes" if yes else "no",))))
    return made


def conditions(budget_s: float = 60.0) -> Conditions:
    return Conditions(seed=0, budget_s=budget_s, clock=time.monotonic)


def test_what_decides_matters_most_and_the_group_that_is_a_coin_is_named() -> None:
    examples = table(400)
    found = examine(
        LINEAR, CLASSES, examples, [k % 5 for k in range(400)], [f"{k:x}" for k in range(400)], conditions()
    )
    json.dumps(found)
    assert found["importance"][0]["column"] == "size"
    drops = {one["column"]: one["drop"] for one in found["importance"]}
    assert drops["size"] > 0.15
    assert abs(drops["noise"]) < 0.05
    assert found["weak_groups"][0]["where"] == "town = Basel"
    assert found["weak_groups"][0]["error"] > 0.3 > found["weak_groups"][0]["elsewhere"]
    assert sum(map(sum, found["confusion"])) == found["held_out"] == 160
    assert [point["examples"] for point in found["learning_curve"]] == [40, 80, 160, 320]
    told = found["twice_the_examples"]
    assert told["low"] <= told["gain"] <= told["high"]
    assert len(found["worst_examples"]) == 20
    assert 0.0 <= found["calibration_error"] < 0.2


def test_of_numbers_the_intervals_are_counted_and_vectors_are_looked_at_one_by_one() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(150, 3))
    examples = [
        Example(Single((row.astype(np.float32),)), Single((float(2 * row[1] + 0.1 * e),)))
        for row, e in zip(x, rng.normal(size=150), strict=True)
    ]
    found = examine(
        Candidate("linear", (("C", 1.0),)),
        NUMBERS,
        examples,
        [k % 5 for k in range(150)],
        ["a"] * 150,
        conditions(),
    )
    assert found["importance"][0]["column"] == "x[1]"
    assert found["held_out"] == 150
    assert 0.8 <= found["coverage"] <= 1.0
    assert found["score"] > 0.95


def test_a_report_needs_classes_or_numbers_and_enough_examples() -> None:
    pictures = parse_program("{input: {[Tensor[4, 4, 1]], []}, output: {[Tensor[4, 4, 1]], []}}")
    with pytest.raises(InvalidInput, match="classes or numbers"):
        examine(LINEAR, pictures, [], [], [], conditions())


def test_no_time_is_said_not_hidden() -> None:
    found = examine(
        LINEAR, CLASSES, table(60), [k % 5 for k in range(60)], ["a"] * 60, conditions(budget_s=0.0)
    )
    assert found["columns_not_looked_at"] == 3


def test_a_column_is_dealt_out_and_nothing_else_changes() -> None:
    inputs = [Single((float(k), "a", None)) for k in range(4)]
    parts = parts_of(CLASSES.input, inputs[0])
    assert [part.name for part in parts] == ["size", "town", "noise"]
    made = dealt(inputs, parts[0], [3, 2, 1, 0])
    assert [one.values for one in made if isinstance(one, Single)] == [
        (float(3 - k), "a", None) for k in range(4)
    ]


def test_a_power_law_is_continued_and_a_flat_curve_promises_nothing() -> None:
    counts = [100, 200, 400, 800]
    law = [0.1 + 2.0 * n**-0.5 for n in counts]
    assert continued(counts, law, 1600) == pytest.approx(0.1 + 2.0 * 1600**-0.5, abs=0.004)
    flat = {n: np.full(200, 0.25) for n in counts}
    told = foretell(flat)
    assert told is not None
    assert abs(told.gain) < 1e-9
    assert foretell({100: np.zeros(50), 200: np.zeros(50)}) is None


def test_the_more_groups_the_clearer_one_must_stand_out() -> None:
    rng = np.random.default_rng(3)
    inputs = [
        Single((float(a), f"town{k % 40}", float(b))) for k, (a, b) in enumerate(rng.normal(size=(800, 2)))
    ]
    losses = (rng.random(800) < 0.2).astype(float)
    assert worst_groups(CLASSES.input, inputs, [""] * 800, losses) == []


def test_probabilities_are_held_against_how_often_they_were_right() -> None:
    truth = np.array([0] * 80 + [1] * 20)
    found = calibration_bins(truth, np.tile([0.8, 0.2], (100, 1)))
    assert found == [{"said": pytest.approx(0.8), "right": 0.8, "share": 1.0}]
