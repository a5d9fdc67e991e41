"""What is odd about examples is found and named, and what is usual is not."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from easel.declare.friendly import read_program
from easel.match.checks import alone, check_columns, check_drift, check_labels, check_near, uneven_classes
from easel.match.examples import Example, Single
from easel.match.kinds import Task

PROGRAM = read_program(
    "input: {size: number, town: category, weight: optional number, id: number}\noutput: [no, yes]"
)
NAMES = [f"{k:x}" for k in range(400)]


def table(n: int = 200, seed: int = 0, **change: Any) -> list[Example]:
    """Usual examples; `change` replaces values of a column by what a function of the row number says."""
    rng = np.random.default_rng(seed)
    made = []
    for k in range(n):
        row: dict[str, Any] = {
            "size": float(rng.normal()),
            "town": str(rng.choice(["Bern", "Basel"])),
            "weight": float(rng.normal()),
            "id": float(rng.normal()),
        }
        answer = "yes" if row["size"] + rng.normal() > 0 else "no"
        row |= {name: make(k, answer) for name, make in change.items()}
        made.append(Example(Single(tuple(row.values())), Single((answer,))))
    return made


def kinds(examples: list[Example]) -> dict[str, str | None]:
    return {one.kind: one.column for one in check_columns(PROGRAM, examples, NAMES)}


def test_usual_examples_raise_nothing() -> None:
    examples = table()
    assert kinds(examples) == {}
    assert check_near(PROGRAM, examples, NAMES) == []
    assert check_drift(PROGRAM, examples, [k >= 150 for k in range(200)]) == []


@pytest.mark.parametrize(
    ("change", "kind", "column"),
    [
        ({"weight": lambda k, _: None if k % 2 else 1.0}, "missing", "weight"),
        ({"town": lambda k, _: "Bern"}, "constant", "town"),
        ({"size": lambda k, _: 1e6 if k == 17 else float(k % 9)}, "outliers", "size"),
        ({"id": lambda k, answer: float(k) + (1000.0 if answer == "yes" else 0.0)}, "leak", "id"),
        ({"town": lambda k, answer: f"t-{answer}-{k % 2}"}, "leak", "town"),
    ],
)
def test_each_oddity_is_found_in_its_column(change: dict[str, Any], kind: str, column: str) -> None:
    found = kinds(table(**change))
    assert found == {kind: column}


def test_an_outlier_names_its_example() -> None:
    found = check_columns(PROGRAM, table(size=lambda k, _: 1e6 if k == 17 else float(k % 9)), NAMES)
    assert found[0].digests == (NAMES[17],)
    assert "1e+06" in found[0].told


def test_one_example_is_told_in_the_singular() -> None:
    (found,) = check_columns(PROGRAM, table(size=lambda k, _: 1e6 if k == 17 else float(k % 9)), NAMES)
    assert "in 1 example (" in found.told
    twice = [*table(), table()[0]]
    assert check_near(PROGRAM, twice, [*NAMES, "again"])[0].told.startswith("1 example nearly the same")


def test_a_rare_class_comes_with_what_to_measure_by() -> None:
    found = uneven_classes(Counter({"healthy": 990, "ill": 10}))
    assert "always saying healthy is right in 99.0%" in found[0].told
    assert "balanced_accuracy" in found[0].told
    assert uneven_classes(Counter({"healthy": 60, "ill": 40})) == []


def test_near_duplicates_and_contradictions_among_them_are_told_apart() -> None:
    examples = table(60)
    twin = examples[3]
    other = "no" if twin.output.values == ("yes",) else "yes"  # type: ignore[union-attr]
    found = check_near(PROGRAM, [*examples, twin, Example(twin.input, Single((other,)))], NAMES)
    assert [(one.kind, one.count) for one in found] == [("near-duplicates", 2), ("contradictions", 3)]


def test_a_feed_that_differs_from_those_before_is_drift() -> None:
    before, after = (
        table(150),
        table(100, seed=1, size=lambda k, _: 5.0 + float(k % 7), town=lambda k, _: "Genf"),
    )
    found = check_drift(PROGRAM, [*before, *after], [False] * 150 + [True] * 100)
    assert {one.column for one in found} >= {"size", "town"}
    assert check_drift(PROGRAM, before, [False] * 150) == []


def test_answers_that_are_hard_to_believe_are_named_unless_they_are_many() -> None:
    losses = dict.fromkeys(NAMES[:100], 0.1) | {"odd": 6.0}
    assert [one.digests for one in check_labels(Task.CLASSIFY, losses)] == [("odd",)]
    assert check_labels(Task.CLASSIFY, dict.fromkeys(NAMES[:100], 6.0)) == []
    errors = dict.fromkeys(NAMES[:100], 0.5) | {"odd": 500.0}
    assert check_labels(Task.REGRESS, errors)[0].digests == ("odd",)


def test_how_well_a_column_alone_tells_the_answer() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=200)
    assert alone((truth * 3 + 1).tolist(), truth) == pytest.approx(1.0)
    assert alone(rng.normal(size=200).tolist(), truth) < 0.3
    assert alone(["a"] * 200, truth) < 0.1
