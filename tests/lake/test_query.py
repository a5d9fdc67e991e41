from __future__ import annotations

import re
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
from easel.lake.query.language import (
    MAX_LENGTH,
    MAX_TERMS,
    MAX_VALUES,
    parse_number,
    parse_query,
    parse_value,
    tag_key,
)

NOW = datetime(2026, 11, 16, 12, 30, tzinfo=UTC)
MIDNIGHT = datetime(2026, 11, 16, tzinfo=UTC)
DAY = timedelta(days=1)


def eq(key: str, value: Value) -> Compare:
    return Compare(Key(key), Op.EQ, value)


def plainly(case: object) -> str:
    """Returns a name of a case that every program which runs one test by its name can repeat."""
    return re.sub(r"\W+", "_", str(case))[:30]


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
        ("job.a in (x)", OneOf(Key("a", of_job=True), ("x",))),
        ("has job.a", Has(Key("a", of_job=True))),
        ("a ~ '^b+'", Compare(Key("a"), Op.MATCH, "^b+")),
        ("a ^= b", Compare(Key("a"), Op.PREFIX, "b")),
        (
            "a != b and a <= 1 and a >= 2 and a < 3",
            And(
                (
                    *(
                        Compare(Key("a"), op, value)
                        for op, value in ((Op.NE, "b"), (Op.LE, 1.0), (Op.GE, 2.0), (Op.LT, 3.0))
                    ),
                )
            ),
        ),
    ],
    ids=plainly,
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
        ("today", Day(MIDNIGHT, MIDNIGHT + DAY)),
        ("-90m", NOW - timedelta(minutes=90)),
        ("-3h", NOW - timedelta(hours=3)),
        ("-2w", NOW - timedelta(weeks=2)),
        ("-2y", "-2y"),
        ("+.5E2", 50.0),
        ("5.", 5.0),
        ("2026-11-16T09:30:15.25Z", datetime(2026, 11, 16, 9, 30, 15, 250_000, UTC)),
        ("2026-11-16T", "2026-11-16T"),
        (r"'a\\b\'c'", "a\\b'c"),
    ],
    ids=plainly,
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
    ids=plainly,
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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x" * (MAX_LENGTH + 1), f"the query has {MAX_LENGTH + 1} characters: at most {MAX_LENGTH}"),
        (" and ".join(["a=b"] * (MAX_TERMS + 1)), f"the query has more than {MAX_TERMS} terms: ask for less"),
        (
            f"a in ({','.join(['b'] * (MAX_VALUES + 1))})",
            f"the query has more than {MAX_VALUES} values: ask for less at once",
        ),
        (
            "a = b c",
            "the query cannot be read near column 7: write e.g. model = BERT and (precision > 0.5 or has reviewed)",
        ),
        ("a = 5 and b ^= 7", "b ^= needs text: put the value in quotes"),
        ("job.a ~ 5", "job.a ~ needs text: put the value in quotes"),
        ("k = -999999w", "999999 weeks ago is before all time"),
        ("k = 2026-13-01", "'2026-13-01' looks like a time but is none: month must be in 1..12"),
        (
            f"{'a' * 65} = b",
            f"'{'a' * 65}' is not a key: use 1 to 64 letters, digits, '_', '-' and '.', beginning with a letter",
        ),
    ],
    ids=plainly,
)
def test_a_refusal_says_what_to_write_instead(text: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_query(text, NOW)
    assert str(refused.value) == said


def test_a_wrong_regular_expression_is_named_and_logged_nowhere(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_query("a ~ '(é'", NOW)
    assert str(refused.value) == "'(é' is not a regular expression (RE2): missing ): (é"
    assert capfd.readouterr() == ("", "")


def test_what_is_just_within_the_limits_is_read() -> None:
    assert parse_query("a=b".ljust(MAX_LENGTH), NOW) == eq("a", "b")
    most = parse_query(" and ".join(["a=b"] * MAX_TERMS), NOW)
    assert most == And((eq("a", "b"),) * MAX_TERMS)
    values = parse_query(f"a in ({','.join(['b'] * MAX_VALUES)})", NOW)
    assert values == OneOf(Key("a"), ("b",) * MAX_VALUES)


def test_keys_and_numbers_are_read_alone_too() -> None:
    assert tag_key("a" * 64) == "a" * 64
    for wrong in ("", "1a", "a b", "a" * 65):
        with pytest.raises(InvalidInput) as refused:
            tag_key(wrong)
        assert repr(wrong) in str(refused.value)
    with pytest.raises(InvalidInput, match="^" + re.escape(repr("!" * 80)) + " is not a key"):
        tag_key("!" * 100)
    assert parse_number("1e3") == 1000.0
    for wrong, said in (
        ("x" * 50, "'" + "x" * 40 + "' is not a number"),
        ("inf", "'inf' cannot be compared"),
    ):
        with pytest.raises(InvalidInput, match="^" + re.escape(said)):
            parse_number(wrong)
    assert parse_value("now", NOW) is NOW


def test_a_key_is_written_as_it_was_read() -> None:
    assert (str(Key("a")), str(Key("a", of_job=True))) == ("a", "job.a")
