"""Raw examples become typed records, or an explanation."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from easel.declare.parse import parse_program
from easel.declare.program import Tensor
from easel.match.examples import Chain, ExampleError, Single, Tree
from easel.match.pictures import SizePolicy, decode_picture
from easel.match.raw import Picture
from easel.match.read import read_asked, read_example, read_object

COLUMNS = "{[age :: Number?, town :: Category[Bern, Chur], note :: Text], []}"
TABLE = parse_program(f"{{input: {COLUMNS}, output: {{[Category[no, yes]], []}}}}")
TOWNS = "{input: {[town :: Category[Bern, Chur]?], []}, output: {[Number], []}}"
IMAGE = parse_program("{input: {[Tensor[2, 2, 1]], []}, output: {[Tensor[3]], []}}")
SERIES = parse_program("{input: {[Tensor[2]], [next]}, output: {[Number], []}}")
TREE = parse_program("{input: {[Number], [l, r]}, output: {[Number], []}}")


def test_a_row_is_read_by_name_or_in_order() -> None:
    by_name = read_example(TABLE, {"age": "44", "town": "Bern", "note": "hm"}, "yes")
    in_order = read_example(TABLE, [44, "Bern", "hm"], "yes")
    assert isinstance(by_name.input, Single)
    assert isinstance(in_order.input, Single)
    assert by_name.input.values == in_order.input.values == (44.0, "Bern", "hm")


def test_an_example_without_an_answer_is_refused_in_words() -> None:
    with pytest.raises(
        ExampleError, match="output: the answer is missing, so there is nothing to learn from it"
    ):
        read_example(TABLE, {"age": 1, "town": "Bern", "note": ""}, "")


def test_a_gap_is_read_where_the_program_allows_it() -> None:
    read = read_example(TABLE, {"age": "NA", "town": "Bern", "note": ""}, "no").input
    assert isinstance(read, Single)
    assert read.values[0] is None


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ({"age": 1, "town": "Brn", "note": ""}, 'input.town: "Brn" is none of the classes .* mean "Bern"'),
        ({"age": "old", "town": "Bern", "note": ""}, "input.age: expected a number, found 'old'"),
        ({"age": float("inf"), "town": "Bern", "note": ""}, "not a usable number"),
        ({"age": 1, "twon": "Bern", "note": ""}, 'no field "twon"; did you mean "town"'),
        ({"age": 1, "town": None, "note": ""}, "the category is missing"),
        ([1, "Bern"], "expected 3 values"),
        (7, "expected 3 values"),
    ],
)
def test_a_wrong_row_is_explained(raw: Any, says: str) -> None:
    with pytest.raises(ExampleError, match=says):
        read_example(TABLE, raw, "yes")


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (np.zeros((3, 2, 1)), "expected 2 × 2 × 1 numbers, found 3 × 2 × 1"),
        (np.array([[[1.0], [np.nan]], [[0.0], [0.0]]]), "1 of 4 numbers are NaN"),
        ([["a", "b"], ["c", "d"]], "expected 2 × 2 × 1 numbers"),
        (b"bytes", "expected 2 × 2 × 1 numbers"),
        (np.zeros((0, 2, 1)), "found 0 × 2 × 1"),
    ],
)
def test_a_wrong_array_is_explained(raw: Any, says: str) -> None:
    with pytest.raises(ExampleError, match=says):
        read_example(IMAGE, raw, [0, 0, 1])


def test_a_class_vector_may_be_the_number_of_its_class() -> None:
    read = read_example(IMAGE, np.zeros((2, 2)), 2).output
    assert isinstance(read, Single)
    np.testing.assert_array_equal(np.asarray(read.values[0]), [0, 0, 1])
    with pytest.raises(ExampleError, match="class 3 does not exist"):
        read_example(IMAGE, np.zeros((2, 2)), 3)


def test_a_series_is_an_array_a_list_of_steps_or_linked_objects() -> None:
    linked = {"x": [1, 2], "next": {"x": [3, 4], "next": None}}
    for raw in (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]], [{"x": [1, 2]}, {"x": [3, 4]}], linked):
        read = read_example(SERIES, raw, 1.5).input
        assert isinstance(read, Chain)
        np.testing.assert_array_equal(np.asarray(read.columns[0]), [[1, 2], [3, 4]])


def test_objects_that_run_in_a_circle_are_refused() -> None:
    ring: dict[str, Any] = {"x": [1, 2]}
    ring["next"] = ring
    with pytest.raises(ExampleError, match="runs in a circle"):
        read_example(SERIES, ring, 1.0)
    leaf = {"x": 1}
    with pytest.raises(ExampleError, match="in the tree twice"):
        read_example(TREE, {"x": 0, "l": leaf, "r": leaf}, 1.0)


def test_a_tree_as_deep_as_a_list_is_read() -> None:
    raw: dict[str, Any] = {"x": 0}
    for depth in range(5_000):
        raw = {"x": depth, "l": raw}
    read = read_object(TREE.input, raw, "input")
    assert isinstance(read, Tree)
    assert sum(1 for _ in read.nodes()) == 5_001


def test_an_empty_series_is_refused() -> None:
    with pytest.raises(ExampleError, match="empty"):
        read_example(SERIES, [], 1.0)


def encoded(width: int, height: int, mode: str = "RGB", kind: str = "PNG") -> bytes:
    out = io.BytesIO()
    Image.new(mode, (width, height), 128).save(out, kind)
    return out.getvalue()


@pytest.mark.parametrize("policy", SizePolicy)
def test_a_picture_is_brought_to_the_programs_size(policy: SizePolicy) -> None:
    assert decode_picture(encoded(30, 20), Tensor((8, 8, 1)), policy).shape == (8, 8, 1)


def test_a_picture_keeps_its_size_where_the_program_leaves_it_open() -> None:
    assert decode_picture(encoded(30, 20, kind="JPEG"), Tensor((None, None, 3))).shape == (20, 30, 3)


def test_a_damaged_picture_is_named_as_it_was_given() -> None:
    stored = Picture(b"\x89PNG no", path="/apps/flowers/4rhstpzh/files/a/3601b905f872015b8c9d3aec-bad.png")
    with pytest.raises(ExampleError, match=r"\Ainput: bad\.png: this is not a picture that can be read"):
        read_object(IMAGE.input, stored, "input")


def test_a_damaged_picture_is_refused() -> None:
    with pytest.raises(ExampleError, match="damaged"):
        decode_picture(encoded(300, 200, kind="JPEG")[:400], Tensor((8, 8, 3)))
    with pytest.raises(ExampleError, match="not a picture"):
        decode_picture(b"hello", Tensor((8, 8, 3)))


def test_a_decompression_bomb_is_refused_before_it_is_unpacked() -> None:
    with pytest.raises(ExampleError, match="pixels"):
        decode_picture(encoded(20_000, 5_000, mode="1"), Tensor((8, 8, 1)))


@pytest.mark.parametrize("word", ["none", "unknown", "missing", "na", "-", "?"])
def test_a_word_that_the_program_lists_is_never_missing(word: str) -> None:
    program = parse_program(
        f'{{input: {{[kind :: Category["{word}", other]?], []}}, output: {{[Category["{word}", sick]], []}}}}'
    )
    read = read_example(program, {"kind": word}, word)
    assert isinstance(read.input, Single)
    assert isinstance(read.output, Single)
    assert (read.input.values, read.output.values) == ((word,), (word,))
    asked, notes = read_asked(program.input, {"kind": word}, "object 1")
    assert isinstance(asked, Single)
    assert (asked.values, notes) == ((word,), [])


def test_a_word_for_a_gap_that_no_class_has_stays_a_gap() -> None:
    read = read_object(parse_program(TOWNS).input, {"town": "none"}, "input")
    assert isinstance(read, Single)
    assert read.values == (None,)
