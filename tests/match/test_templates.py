"""Which template fires, and what it proposes."""

from __future__ import annotations

import pytest

from easel.declare.parse import parse_program
from easel.declare.program import Program
from easel.match.kinds import Task, TemplateKind
from easel.match.propose import propose_candidates
from easel.match.registry import families_for
from easel.match.summary import DataSummary
from easel.match.templates import TEMPLATES, fits, match_program

CLASS, VALUE = "{[Tensor[3]], []}", "{[Number], []}"


@pytest.mark.parametrize(
    ("source", "target", "template"),
    [
        ("{[Tensor[256, 256, 3]], []}", CLASS, "image classification"),
        ("{[Tensor[?, ?, 3]], []}", "{[Category], []}", "image classification"),
        ("{[Tensor[28, 28]], []}", CLASS, "image classification"),
        ("{[Tensor[28, 28, 1]], []}", VALUE, "image regression"),
        ("{[Tensor[28, 28, 1]], []}", "{[Tensor[56, 56, 1]], []}", "image recovery"),
        ("{[Tensor[10]], [next]}", CLASS, "time-series classification"),
        ("{[Tensor[10], Tensor[2]], [next]}", CLASS, "time-series classification"),
        ("{[Tensor[10]], [next]}", VALUE, "time-series regression"),
        ("{[Tensor[10]], [next]}", "{[Tensor[4]], [next]}", "time-series translation"),
        ("{[Tensor[10]], [l, r]}", CLASS, "tree classification"),
        ("{[Tensor[10]], [a, b, c]}", CLASS, "tree classification"),
        ("{[Tensor[10]], []}", CLASS, "table classification"),
        ("{[Number, Category?, Text], []}", "{[Category], []}", "table classification"),
        ("{[Text], []}", "{[Category], []}", "text classification"),
        ("{[Text], []}", VALUE, "text regression"),
        ("{[Tensor[10]], []}", VALUE, "table regression"),
        ("{[Tensor[10]], []}", "{[Tensor[1]], []}", "table regression"),
        ("{[Tensor[10]], []}", "{[Number[4]], []}", "multi-output regression"),
        ("{[Tensor[10]], []}", "{[Number, Number], []}", "multi-output regression"),
        ("{[Tensor[32, 32, 3], Number], []}", CLASS, "picture and table classification"),
        ("{[Number, Text, Tensor[?, ?, 3]], []}", VALUE, "picture and table regression"),
        ("{[Tensor[32, 32], Date], []}", "{[Number, Number], []}", "picture and table regression"),
        ("{[Number], []}", "{[Category, Category], []}", "table classification, several answers"),
        ("{[Text], []}", "{[Category, Category], []}", "text classification, several answers"),
        ("{[Tensor[8, 8, 3]], []}", "{[Category, Category], []}", "image classification, several answers"),
        ("{[Number], []}", "{[Category, Number], []}", "general auto-encoder"),
        ("{[Tensor[2, 2, 2, 2]], []}", CLASS, "general classification"),
        ("{[Tensor[10]], [l, r]}", "{[Tensor[10]], [l, r]}", "general auto-encoder"),
    ],
)
def test_the_most_specific_template_fires(source: str, target: str, template: str) -> None:
    program = parse_program(f"{{input: {source}, output: {target}}}")
    assert match_program(program).name == template


def test_a_star_takes_an_arbitrary_tail_and_no_star_takes_none() -> None:
    two = parse_program("{input: {[Tensor[5], Tensor[2, 2]], [a, b]}, output: {[Number], []}}").input
    assert fits("{[Tensor[A], *], [a, c]}", two)
    assert not fits("{[Tensor[A]], [a, c]}", two)
    assert not fits("{[Tensor[A], *], [a]}", two)
    assert fits("{[*], [*]}", two)


def _asked(program: Program) -> tuple[TemplateKind, Task]:
    template = match_program(program)
    return template.kind, template.task


def test_every_template_proposes_all_its_families_with_a_cost() -> None:
    examples = {
        "image": "{input: {[Tensor[8, 8, 1]], []}, output: {[Tensor[3]], []}}",
        "series": "{input: {[Tensor[2]], [next]}, output: {[Tensor[3]], []}}",
        "table": "{input: {[Tensor[8]], []}, output: {[Number], []}}",
    }
    for text in examples.values():
        program = parse_program(text)
        found = propose_candidates(program, DataSummary(500, 64, steps=20, side=8, classes=3))
        assert {c.family for c in found} >= {family.name for family in families_for(*_asked(program))}
        assert all(c.cost_s > 0 for c in found)
        assert len({c.name for c in found}) == len(found)


def test_a_wide_range_of_values_adds_the_normalisation_family() -> None:
    program = parse_program("{input: {[Tensor[8, 8, 1]], []}, output: {[Tensor[3]], []}}")
    plain = propose_candidates(program, DataSummary(500, 64, side=8, classes=3))
    wide = propose_candidates(program, DataSummary(500, 64, side=8, classes=3, wide=True))
    assert not any("norm" in c.name for c in plain)
    assert {c.text("norm", "") for c in wide} >= {"log", "f_0.5", "f_0.25", "f_2"}


def test_costs_grow_with_the_data() -> None:
    for template in TEMPLATES:
        assert families_for(template.kind, template.task)
    program = parse_program("{input: {[Tensor[8, 8, 1]], []}, output: {[Tensor[3]], []}}")
    small = {c.name: c.cost_s for c in propose_candidates(program, DataSummary(2_000, 64, side=8, classes=3))}
    large = {
        c.name: c.cost_s for c in propose_candidates(program, DataSummary(90_000, 64, side=8, classes=3))
    }
    assert all(large[name] > small[name] for name in small)


def test_photographs_too_are_offered_to_quick_models_which_see_a_small_copy() -> None:
    program = parse_program("{input: {[Tensor[512, 512, 3]], []}, output: {[Category], []}}")
    found = propose_candidates(program, DataSummary(240, 512 * 512 * 3, side=512, classes=2))
    quick = min(found, key=lambda candidate: candidate.cost_s)
    assert quick.family in ("svm", "extra_trees", "logistic_regression")
    assert quick.cost_s < 5.0


def test_a_variable_that_is_used_twice_means_one_size() -> None:
    square, oblong = (
        parse_program(f"{{input: {{[Tensor[{sides}]], []}}, output: {CLASS}}}")
        for sides in ("16, 16", "16, 32")
    )
    assert fits("{[Tensor[A, A]], []}", square.input)
    assert not fits("{[Tensor[A, A]], []}", oblong.input)
    assert fits("{[Tensor[A, B]], []}", oblong.input)
    sides: dict[str, int | None] = {}
    assert fits("{[Tensor[A, B]], []}", oblong.input, sides)
    assert not fits("{[Tensor[A]], []}", oblong.output, sides), "input and output share their variables"
