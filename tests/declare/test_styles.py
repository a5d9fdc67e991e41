"""What the first examples tell of a column's numbers and dates holds for all that come later."""

from __future__ import annotations

from typing import Any

import pytest

from easel.declare.friendly import read_program
from easel.declare.pairs import objects_of_rows, pairs_of_rows
from easel.declare.styles import ColumnStyle, StyleBook, joined, read_styles, restyle, styles_json
from easel.errors import InvalidInput

WEIGHTS = read_program("input: {weight: number, town: category}\noutput: {price: number}")
VISITS = read_program("input: {when: date}\noutput: [no, yes]")


def fed(book: StyleBook, *weights: str) -> list[Any]:
    rows = [{"weight": weight, "town": "Bern", "price": "1"} for weight in weights]
    return [pair[0]["weight"] for pair in pairs_of_rows(WEIGHTS, ["weight", "town", "price"], rows, book)]


def visited(book: StyleBook, *dates: str) -> list[Any]:
    rows = [{"when": when, "y": "no"} for when in dates]
    return [pair[0]["when"] for pair in pairs_of_rows(VISITS, ["when", "y"], rows, book)]


def moment(iso: str) -> float:
    from easel.declare.cells import read_moment

    found = read_moment(iso)
    assert found is not None
    return found


def test_a_decimal_comma_of_the_first_feed_is_one_in_a_later_file_and_in_a_question() -> None:
    book = StyleBook()
    assert fed(book, "1,250", "2,5") == [1.25, 2.5]
    assert book.found == {"input.weight": ColumnStyle(",")}
    later = StyleBook(read_styles(styles_json(book.found)))
    assert fed(later, "1,250") == [1.25]
    asked = [{"weight": "1,250", "town": "Bern"}]
    (plain,) = objects_of_rows(WEIGHTS, ["weight", "town"], asked, later)
    assert plain["weight"] == 1.25
    assert restyle(WEIGHTS.input, "input", asked[0], later.known) == {"weight": 1.25, "town": "Bern"}
    assert restyle(WEIGHTS.input, "input", ["1,250", "Bern"], later.known) == [1.25, "Bern"]
    assert (later.found, later.notes) == ({}, [])


def test_a_file_that_proves_other_decimals_is_read_as_it_is_written_and_told_of() -> None:
    book = StyleBook({"input.weight": ColumnStyle(".")})
    assert fed(book, "1,250", "2,5") == [1.25, 2.5]
    assert book.notes == [
        '"weight": these numbers have decimal commas, earlier ones had points: each is read as it is written'
    ]
    assert book.found == {}, "what the first examples told stays"


def test_another_unit_is_refused_and_none_is_taken_for_the_known_one() -> None:
    book = StyleBook()
    assert fed(book, "1.5 kg", "2 kg") == [1.5, 2.0]
    assert fed(StyleBook(book.known), "3 kg", "4") == [3.0, 4.0]
    assert fed(StyleBook(book.known), "3", "4") == [3.0, 4.0]
    with pytest.raises(InvalidInput, match='"weight" was fed in kg, and these are in g'):
        fed(StyleBook(book.known), "1500 g", "2000 g")


def test_what_a_later_feed_tells_first_is_added_to_what_is_known() -> None:
    known, told = {"input.weight": ColumnStyle(".")}, {"input.weight": ColumnStyle(",", "kg")}
    assert joined(known, told) == {"input.weight": ColumnStyle(".", "kg")}
    assert joined({}, told) == joined(told, {}) == told


def test_days_and_months_keep_their_order() -> None:
    book = StyleBook()
    assert visited(book, "25/12/2026", "03/04/2026")[1] == moment("2026-04-03")
    assert book.found == {"input.when": ColumnStyle(order="dmy")}
    later = StyleBook(book.known)
    assert visited(later, "03/04/2026") == [moment("2026-04-03")]
    assert visited(later, "03/04/2026 10:30") == [moment("2026-04-03 10:30")]
    assert restyle(VISITS.input, "input", "03/04/2026", book.known) == moment("2026-04-03")
    assert later.notes == []
    assert visited(later, "12/25/2026", "03/04/2026")[1] == moment("2026-03-04")
    assert "written month first, earlier ones day first" in later.notes[0]


def test_what_means_one_thing_everywhere_is_not_kept() -> None:
    book = StyleBook()
    fed(book, "1", "2")
    for cell in ("2026-01-02", "01.02.2026", "2 Feb 2026"):
        visited(book, cell)
    assert book.found == {}


def test_the_columns_of_a_vector_and_an_unnamed_answer_have_one_style_each() -> None:
    program = read_program("{input: {[Tensor[2]], []}, output: {[Number], []}}")
    book = StyleBook()
    rows = [{"a": "1,250", "b": "2,5", "y": "1,500"}, {"a": "1", "b": "3", "y": "0,5"}]
    pairs = list(pairs_of_rows(program, ["a", "b", "y"], rows, book))
    assert pairs == [([1.25, 2.5], 1.5), ([1.0, 3.0], 0.5)]
    assert set(book.found) == {"input.x", "output.x"}


def test_objects_of_json_tell_too_and_what_is_known_is_not_looked_at_again() -> None:
    book = StyleBook()
    book.look(WEIGHTS.input, "input", [{"weight": "2,5"}, {"weight": 7}, ["1,250", "Bern"]])
    assert book.found == {"input.weight": ColumnStyle(",")}
    book.look(WEIGHTS.input, "input", [{"weight": "2.5"}])
    assert (book.known, book.notes) == ({"input.weight": ColumnStyle(",")}, [])


def test_a_number_below_one_groups_no_thousands() -> None:
    assert fed(StyleBook(), "0,125", "3") == [0.125, 3.0]
    assert fed(StyleBook(), "0.125", "1,250") == ["0.125", "1,250"]
