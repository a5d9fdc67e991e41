from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from easel.errors import InvalidInput
from easel.lake.query.ast import (
    EVERYTHING,
    And,
    Compare,
    Day,
    Expression,
    Has,
    Key,
    Not,
    OneOf,
    Op,
    Or,
    Value,
)
from easel.lake.query.language import parse_query

NOW = datetime(2026, 11, 16, 12, 30, tzinfo=UTC)
MIDNIGHT = datetime(2026, 11, 16, tzinfo=UTC)
DAY = timedelta(days=1)


def eq(key: str, value: Value) -> Compare:
    return Compare(Key(key), Op.EQ, value)


def test_the_papers_query_is_one_sentence() -> None:
    text = "job.creator = john and job.create_time = today and job.model = BERT and precision > 0.5"
    assert parse_query(text, NOW) == And(
        (
            Compare(Key("creator", of_job=True), Op.EQ, "john"),
            Compare(Key("create_time", of_job=True), Op.EQ, Day(MIDNIGHT, MIDNIGHT + DAY)),
            Compare(Key("model", of_job=True), Op.EQ, "BERT"),
            Compare(Key("precision"), Op.GT, 0.5),
        )
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", EVERYTHING),
        ("a=b", eq("a", "b")),
        ("a = b or c = d and e = f", Or((eq("a", "b"), And((eq("c", "d"), eq("e", "f")))))),
        ("(a = b or c = d) and e = f", And((Or((eq("a", "b"), eq("c", "d"))), eq("e", "f")))),
        ("not a = b", Not(eq("a", "b"))),
        ("NOT (a = b AND has c)", Not(And((eq("a", "b"), Has(Key("c")))))),
        ("a in (x, 2, 'y z')", OneOf(Key("a"), ("x", 2.0, "y z"))),
        ("order = and", eq("order", "and")),
        ("android = yes", eq("android", "yes")),
    ],
)
def test_terms_join_as_people_expect(text: str, expected: Expression) -> None:
    assert parse_query(text, NOW) == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.5", 0.5),
        ("-1e-3", -1e-3),
        ("'0.5'", "0.5"),
        ("bert-base", "bert-base"),
        ('"it\\"s"', 'it"s'),
        ("2026-11-15", Day(MIDNIGHT - DAY, MIDNIGHT)),
        ("yesterday", Day(MIDNIGHT - DAY, MIDNIGHT)),
        ("now", NOW),
        ("-7d", NOW - 7 * DAY),
        ("2026-11-16T09:30", datetime(2026, 11, 16, 9, 30, tzinfo=UTC)),
        ("2026-11-16T09:30+02:00", datetime(2026, 11, 16, 7, 30, tzinfo=UTC)),
        ("/data/x.json:2", "/data/x.json:2"),
        ("nan", "nan"),
    ],
)
def test_a_value_has_the_type_that_it_looks_like(text: str, value: Value) -> None:
    assert parse_query(f"k = {text}", NOW) == eq("k", value)


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "a =",
        "= b",
        "a == b",
        "(a = b",
        "a = b c = d",
        "a = 'open",
        "a ~ '('",
        "a ~ '(x)\\\\1'",
        "a ~ 5",
        "a ^= 5",
        "a in ()",
        "k = 2026-13-01",
        "k = 2026-11-16T99:00",
        "k = -999999w",
        "1a = b",
        "a" * 70 + " = b",
        "x" * 5000,
        " and ".join(["a = b"] * 200),
        "not " * 500 + "a = b",
        "(" * 1500 + "a = b" + ")" * 1500,
    ],
    ids=lambda t: t[:20],
)
def test_what_cannot_be_read_is_refused(text: str) -> None:
    if text.startswith("(((("):
        assert parse_query(text, NOW) == eq("a", "b")  # deep, and yet it means something
        return
    with pytest.raises(InvalidInput):
        parse_query(text, NOW)


@given(st.text(max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    with suppress(InvalidInput):
        parse_query(text, NOW)
