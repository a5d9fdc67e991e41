"""Values as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import BaseModel

from easel.cli.plain import NOTHING, money, plain, short_id


class Inner(BaseModel):
    candidate: str
    quality: float | None = None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, NOTHING),
        ("", NOTHING),
        ([], NOTHING),
        (True, "yes"),
        (False, "no"),
        (0, "0"),
        (0.1 + 0.2, "0.3"),
        ({"topic": "astronomy", "empty": None}, "topic=astronomy"),
        (["convnet(width=0.25)"], "convnet(width=0.25)"),
        (Inner(candidate="svm", quality=0.5), "candidate=svm, quality=0.5"),
        ({"best": Inner(candidate="svm")}, "best=(candidate=svm)"),
        ([Inner(candidate="a"), Inner(candidate="b")], "(candidate=a), (candidate=b)"),
    ],
)
def test_no_value_is_shown_in_python_s_notation(value: object, text: str) -> None:
    assert plain(value) == text


def test_times_are_local_and_to_the_second() -> None:
    moment = datetime(2026, 5, 1, 12, 30, 15, 123456, tzinfo=UTC)
    assert plain(moment) == moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def test_only_ids_of_jobs_are_shortened() -> None:
    assert short_id("job_01m7nhwf00vb9zh4c8prg6pzhm") == "g6pzhm"
    assert short_id("job_01m7nhwf00vb9zh4c8prg6pzhm-output:1") == "job_01m7nhwf00vb9zh4c8prg6pzhm-output:1"
    assert short_id("digits") == "digits"


def test_small_sums_keep_two_digits_and_are_never_powers_of_ten() -> None:
    sums = [0.0, 12.345, 0.25, 0.0020051, 0.0000123, 0.0000016, 1e-9]
    assert [money(amount, "USD") for amount in sums] == [
        "0.00 USD",
        "12.35 USD",
        "0.25 USD",
        "0.0020 USD",
        "0.000012 USD",
        "0.000002 USD",
        "under 0.000001 USD",
    ]
