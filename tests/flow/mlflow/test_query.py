"""MLflow's filter language: what is understood, and what is refused rather than misread."""

from __future__ import annotations

import pytest

from easel.flow.mlflow.errors import ErrorCode, MlflowRefusal
from easel.flow.mlflow.query import Comparison, Entity, Operator, OrderKey, holds, parse_filter, parse_order


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("metrics.acc > 0.5", Comparison(Entity.METRIC, "acc", Operator.GT, 0.5)),
        ("metric.`val acc` <= -1e-3", Comparison(Entity.METRIC, "val acc", Operator.LE, -1e-3)),
        ("params.lr = '0.1'", Comparison(Entity.PARAM, "lr", Operator.EQ, "0.1")),
        ('parameters."a b" != "x"', Comparison(Entity.PARAM, "a b", Operator.NE, "x")),
        (
            "tags.mlflow.source.name LIKE '%.py'",
            Comparison(Entity.TAG, "mlflow.source.name", Operator.LIKE, "%.py"),
        ),
        ("tag.likes ilike 'IN%'", Comparison(Entity.TAG, "likes", Operator.ILIKE, "IN%")),
        ("tags.x IS NULL", Comparison(Entity.TAG, "x", Operator.IS_NULL, None)),
        ("params.x is not null", Comparison(Entity.PARAM, "x", Operator.IS_NOT_NULL, None)),
        ("run_id IN ('a', 'b')", Comparison(Entity.ATTRIBUTE, "run_id", Operator.IN, ("a", "b"))),
        ("attributes.run_id NOT IN ('a')", Comparison(Entity.ATTRIBUTE, "run_id", Operator.NOT_IN, ("a",))),
        ("dataset.name = 'and or'", Comparison(Entity.DATASET, "name", Operator.EQ, "and or")),
        ("status = ''", Comparison(Entity.ATTRIBUTE, "status", Operator.EQ, "")),
    ],
)
def test_a_comparison_is_read(text: str, expected: Comparison) -> None:
    assert parse_filter(text) == (expected,)


def test_comparisons_are_joined_by_and() -> None:
    found = parse_filter("metrics.a > 1 AND params.b = 'and' and tags.android = 'x'")
    assert [each.key for each in found] == ["a", "b", "android"]


@pytest.mark.parametrize("nothing", [None, "", "   "])
def test_no_filter_is_no_comparison(nothing: str | None) -> None:
    assert parse_filter(nothing) == ()


@pytest.mark.parametrize(
    "text",
    [
        "metrics.a > 1 OR metrics.b > 2",
        "metrics.a >",
        "foo.bar = 1",
        "= 'x'",
        "params.a = 'unclosed",
        "metrics.a > 1; drop table jobs",
        "metrics.a > 1 metrics.b > 2",
        "(" * 1000,
        "a = 'x' AND " * 3000,
        "\x00",
    ],
)
def test_what_is_no_filter_is_refused(text: str) -> None:
    with pytest.raises(MlflowRefusal) as refused:
        parse_filter(text)
    assert refused.value.code is ErrorCode.INVALID_PARAMETER_VALUE


def test_orders_are_read() -> None:
    assert parse_order(["metrics.acc DESC", "start_time", "tags.`a b` asc"]) == [
        OrderKey(Entity.METRIC, "acc", True),
        OrderKey(Entity.ATTRIBUTE, "start_time", False),
        OrderKey(Entity.TAG, "a b", False),
    ]


def test_like_heeds_case_and_ilike_does_not() -> None:
    like, ilike = (Comparison(Entity.TAG, "k", how, "A%_z") for how in (Operator.LIKE, Operator.ILIKE))
    assert holds(like, "Abcz")
    assert not holds(like, "abcz")
    assert holds(ilike, "abcz")
    assert not holds(like, "Az")
    assert not holds(like, None)
