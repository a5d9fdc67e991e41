"""Search spaces: what they contain, what they refuse, how they travel."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from easel.declare.dimensions import (
    Categorical,
    Dimension,
    DimensionRole,
    Float,
    Integer,
    Ordinal,
    When,
    fraction,
)
from easel.declare.rates import Rates, Term
from easel.declare.space import Forbidden, Point, Space, parse_space
from easel.errors import InvalidInput

CNN = Space(
    (
        Categorical("vm", ("small", "big"), role=DimensionRole.RESOURCE),
        Ordinal("cores", (8, 16), role=DimensionRole.RESOURCE),
        Float("rate", 1e-5, 1e-1, log=True),
        Categorical("optimiser", ("sgd", "adam")),
        Float("momentum", 0.0, 0.99, when=When("optimiser", ("sgd",))),
        Integer("batch", 16, 256, log=True),
        fraction("s", (0.1, 1.0)),
    ),
    forbidden=(Forbidden({"vm": ("small",), "cores": (16,)}),),
    rates=Rates((Term(by="vm", table={"small": 0.5, "big": 2.0}, times=("cores",)),), base=1.0),
)


@given(st.integers(0, 10_000))
def test_every_draw_is_a_point_of_the_space_and_canonical_already(seed: int) -> None:
    point = CNN.sample(random.Random(seed).random)
    assert CNN.check(point) == point
    assert not (point["vm"] == "small" and point["cores"] == 16)
    assert ("momentum" in point) == (point["optimiser"] == "sgd")


def test_a_space_survives_the_way_into_a_file_and_back() -> None:
    assert parse_space(CNN.to_dict()) == CNN
    assert parse_space(CNN.to_dict()).fingerprint == CNN.fingerprint


def test_the_fingerprint_changes_with_the_space() -> None:
    assert (
        Space((*CNN.dimensions, Integer("more", 1, 2)), CNN.forbidden, CNN.rates).fingerprint
        != CNN.fingerprint
    )


def test_the_grid_lists_what_is_allowed_once() -> None:
    space = Space(
        (
            Ordinal("a", (1, 2, 3)),
            Categorical("b", (True, False)),
            Ordinal("c", (1, 2), when=When("b", (True,))),
        ),
        forbidden=(Forbidden({"a": (3,)}),),
    )
    points = list(space.grid())
    assert len(points) == 2 * (2 + 1)
    assert all(space.contains(point) for point in points)


def test_the_price_follows_the_rates() -> None:
    point: Point = {"vm": "big", "cores": 16, "rate": 1e-3, "optimiser": "adam", "batch": 32, "s": 1.0}
    assert CNN.price_per_hour(point) == 2.0 * 16 + 1.0
    assert Space((Integer("a", 1, 2),)).price_per_hour({"a": 1}) is None


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"rate": 1.0}, "lies in"),
        ({"vm": "huge"}, "one of"),
        ({"cores": 16}, "forbidden"),
        ({"momentum": 0.5}, "does not apply"),
        ({"colour": 3}, "not a dimension"),
        ({"batch": 20.5}, "whole number"),
        ({"rate": float("nan")}, "finite"),
        ({"rate": "fast"}, "finite number"),
    ],
)
def test_a_point_outside_is_refused_with_the_reason(change: dict[str, object], complaint: str) -> None:
    point: Point = {"vm": "small", "cores": 8, "rate": 1e-3, "optimiser": "adam", "batch": 32, "s": 1.0}
    assert CNN.contains(point)
    with pytest.raises(InvalidInput, match=complaint):
        CNN.check({**point, **change})  # type: ignore[dict-item]  # wrong on purpose


def test_a_missing_coordinate_is_named() -> None:
    with pytest.raises(InvalidInput, match="'rate'"):
        CNN.check({"vm": "small", "cores": 8})


def test_a_number_that_went_through_text_is_recognised() -> None:
    space = Space((Ordinal("s", (1 / 60, 0.1)), Float("x", 0.0, 0.3)))
    assert space.check({"s": 0.016666666666667, "x": 0.30000000000000004}) == {"s": 1 / 60, "x": 0.3}


def test_true_is_not_one() -> None:
    space = Space((Categorical("a", (True, False)),))
    assert not space.contains({"a": 1})


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Space(()), "no dimensions"),
        (lambda: Space((Integer("a", 1, 2), Float("a", 0, 1))), "must differ"),
        (lambda: Integer("a", 3, 2), "empty"),
        (lambda: Float("a", 0.0, 1.0, log=True), "log scale"),
        (lambda: Float("a", 0.0, float("inf")), "finite"),
        (lambda: Categorical("a", ()), "no values"),
        (lambda: Ordinal("a", (1, 1.0)), "twice"),
        (lambda: Integer("a", 1, 5, step=0), "step"),
        (lambda: Integer("a b", 1, 5), "letters"),
        (lambda: Space((fraction("s"),)), "nothing is left"),
        (lambda: fraction("s", (0.5, 2.0)), "shares"),
        (lambda: Ordinal("e", (4, 1), role=DimensionRole.FIDELITY), "rising"),
        (lambda: Categorical("e", ("x",), role=DimensionRole.FIDELITY), "order"),
        (lambda: Space((Integer("a", 1, 2, when=When("b", (1,))),)), "before it"),
        (lambda: When("a", ()), "never holds"),
        (lambda: Space((Ordinal("a", (1, 2)),), (Forbidden({"a": (1, 2)}),)), "leave no point"),
        (lambda: Space((Ordinal("a", (1, 2)),), (Forbidden({}),)), "every point"),
        (lambda: Space((Ordinal("a", (1, 2)),), (Forbidden({"b": (1,)}),)), "not a dimension"),
        (
            lambda: Space((Integer("a", 1, 2),), rates=Rates((Term(rate=1.0, times=("b",)),))),
            "not a dimension",
        ),
        (lambda: Term(rate=-1.0), "at least 0"),
        (lambda: Term(by="a"), "either"),
        (
            lambda: Space((Categorical("a", ("x", "y")),), rates=Rates((Term(by="a", table={"x": 1.0}),))),
            "lacks y",
        ),
        (lambda: parse_space({"dimensions": [{"type": "float", "name": "a"}]}), "not valid at"),
        (lambda: parse_space({"dimensions": [{"type": "complex", "name": "a"}]}), "not valid at"),
    ],
)
def test_a_contradictory_declaration_is_refused_when_it_is_made(make: object, complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        make()  # type: ignore[operator]


@given(st.sampled_from(CNN.dimensions), st.floats(0, 1, exclude_max=True))
def test_quantile_and_unit_agree(dimension: Dimension, unit: float) -> None:
    value = dimension.at(unit)
    assert dimension.check(value) == value
    assert 0.0 <= dimension.unit(value) <= 1.0
