"""Cells as people write them."""

from __future__ import annotations

import pytest

from easel.declare.cells import NumberStyle, moment_form, read_moment, read_number, style_of


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("71", 71.0),
        ("-1.5e3", -1500.0),
        ("1,234.56", 1234.56),
        ("1.234,56", 1234.56),
        ("1'234", 1234.0),
        ("12,5", 12.5),
        ("$ 1,200", 1200.0),
        ("-$5", -5.0),
        ("1 200 €", 1200.0),
        ("45 %", 45.0),
        ("−3", -3.0),
        ("5 kg", None),
        ("1,2,3", None),
        ("inf", None),
        ("1_000", None),
        ("old", None),
        ("", None),
    ],
)
def test_a_number_is_read_with_its_separators_and_currency(cell: str, number: float | None) -> None:
    assert read_number(cell) == number


def test_the_column_tells_a_decimal_comma_from_a_thousands_mark() -> None:
    german = style_of(["1,234", "2,5", "", "3,75"])
    assert german == NumberStyle(",")
    assert read_number("1,234", german) == 1.234
    english = style_of(["1,234", "2,500.5", "17"])
    assert english == NumberStyle(".")
    assert read_number("1,234", english) == 1234.0


def test_one_unit_is_read_and_two_units_are_no_column_of_numbers() -> None:
    style = style_of(["5 kg", "7.5 kg"])
    assert style == NumberStyle(".", "kg")
    assert read_number("7.5 kg", style) == 7.5
    assert style_of(["5 kg", "300 g"]) is None


@pytest.mark.parametrize(
    ("cell", "same"),
    [
        ("16.11.2026", "2026-11-16"),
        ("11/16/2026", "2026-11-16"),
        ("16 Nov 2026", "2026-11-16"),
        ("2026-11-16T18:30:00+01:00", "2026-11-16 17:30"),
    ],
)
def test_a_date_is_one_moment_however_it_is_written(cell: str, same: str) -> None:
    assert read_moment(cell) == read_moment(same) is not None


def test_the_column_tells_day_from_month() -> None:
    form = moment_form(["01/02/2026", "25/12/2026"])
    assert form == "%d/%m/%Y"
    assert read_moment("01/02/2026", form) == read_moment("2026-02-01")
    assert moment_form(["yesterday", "2026-02-01"]) is None
    assert moment_form(["1.5", "2.25"]) is None
