"""The language in which people say what goes in and what comes out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from easel.declare.friendly import read_program
from easel.declare.hints import Shape, program_from_function, program_from_types
from easel.declare.parse import parse_program
from easel.declare.program import Category, DataType, Number, Program, ProgramError, Tensor, Text

IMAGES = "{input: {[Tensor[256, 256, 3]], []}, output: {[Tensor[3]], []}}"
SERIES = "{input: {[Tensor[10]], [next]}, output: {[Tensor[4]], []}}"


def test_the_papers_two_programs_are_read_as_written() -> None:
    three = DataType((Tensor((3,)),))
    assert parse_program(IMAGES) == Program(DataType((Tensor((256, 256, 3)),)), three)
    assert parse_program(SERIES).input == DataType((Tensor((10,)),), ("next",))


def test_fields_may_have_names_and_trees_two_pointers() -> None:
    program = parse_program(
        "{input: {[x :: Tensor[5], 7 :: Tensor[2, 2]], [left, right]}, output: {[Tensor[2]], []}}"
    )
    assert program.input == DataType((Tensor((5,), "x"), Tensor((2, 2), "7")), ("left", "right"))


def test_the_added_words_say_categories_missing_values_text_and_regression() -> None:
    inside = '{[age :: Number?, "Home town" :: Category[Bern, "Le Locle"], Text], []}'
    text = f"{{input: {inside}, output: {{[Number[2]], []}}}}"
    program = parse_program(text)
    assert program.input.fields == (
        Number(1, "age", optional=True),
        Category(("Bern", "Le Locle"), "Home town"),
        Text(),
    )
    assert program.output.fields == (Number(2),)


names = st.text(min_size=1, max_size=8).filter(lambda s: bool(s.strip()))
sides = st.one_of(st.none(), st.integers(1, 50))
fields = st.one_of(
    st.builds(
        lambda shape, n: Tensor(tuple(shape), n), st.lists(sides, min_size=1, max_size=3), st.none() | names
    ),
    st.builds(Number, st.integers(1, 9), st.none() | names, st.booleans()),
    st.builds(
        lambda v, n, o: Category(tuple(v), n, o),
        st.lists(names, unique=True),
        st.none() | names,
        st.booleans(),
    ),
    st.builds(Text, st.none() | names, st.booleans()),
)
data_types = st.builds(
    lambda fs, ps: DataType(tuple(fs), tuple(ps)),
    st.lists(fields, min_size=1, max_size=4, unique_by=lambda f: f.name if f.name is not None else object()),
    st.lists(st.from_regex(r"[a-z0-9]{9,12}", fullmatch=True), max_size=3, unique=True),
)


@given(st.builds(Program, data_types, data_types))
def test_every_program_reads_back_what_it_writes(program: Program) -> None:
    assert parse_program(str(program)) == program


@given(st.text(alphabet='{}[],: inputoTensorNumber0123?"', max_size=60))
def test_no_text_makes_the_reader_fail_in_another_way_than_a_program_error(text: str) -> None:
    try:
        program = read_program(text)
    except ProgramError:
        return
    assert parse_program(str(program)) == program


@pytest.mark.parametrize(
    ("text", "character", "says"),
    [
        ("{input: {[Tensr[5]], []}, output: {[Tensor[3]], []}}", 11, "did you mean Tensor?"),
        ("{input: {[tensor[5]], []}, output: {[Tensor[3]], []}}", 17, "did you mean Tensor?"),
        ("{inptu: {[Tensor[5]], []}, output: {[Tensor[3]], []}}", 2, 'expected "input"'),
        ("{input: {[Tensor[0]], []}, output: {[Tensor[3]], []}}", 18, "between 1 and 65,536"),
        ("{input: {[Tensor[-2]], []}, output: {[Tensor[3]], []}}", 18, "between 1 and 65,536"),
        (
            "{input: {[Tensor[999999999999999999]], []}, output: {[Tensor[3]], []}}",
            18,
            "between 1 and 65,536",
        ),
        ("{input: {[Tensor[60000, 60000]], []}, output: {[Tensor[3]], []}}", 11, "at most 67,108,864"),
        ("{input: {[Tensor[]], []}, output: {[Tensor[3]], []}}", 11, "at least one dimension"),
        ("{input: {[Tensor[5]], [a, a]}, output: {[Tensor[3]], []}}", 9, "used twice"),
        ("{input: {[a :: Tensor[5]], [a]}, output: {[Tensor[3]], []}}", 9, "used twice"),
        ("{input: {[], []}, output: {[Tensor[3]], []}}", 1, "input has no field"),
        ("{input: {[Tensor[5]], []}, output: {[Category[a, b, a]], []}}", 38, "same value twice"),
        ("{input: {[Tensor[5]], []}", 26, "the end of the text"),
        ("{input: {[Tensor[5]], []}, output: {[Tensor[3]], []}} and", 55, "expected the end"),
    ],
)
def test_an_error_points_at_the_character(text: str, character: int, says: str) -> None:
    with pytest.raises(ProgramError) as caught:
        parse_program(text)
    assert says in caught.value.message
    assert caught.value.details == {"line": 1, "character": character}
    assert caught.value.message.splitlines()[-1] == "  " + " " * (character - 1) + "^"


def test_an_error_on_a_later_line_shows_that_line() -> None:
    with pytest.raises(ProgramError) as caught:
        parse_program("{input: {[Tensor[5]], []},\n output: {[Tensr[3]], []}}")
    assert caught.value.details == {"line": 2, "character": 12}
    assert " output: {[Tensr[3]], []}}" in caught.value.message


@pytest.mark.parametrize(
    ("friendly", "text"),
    [
        (
            "input: image 28 x 28\noutput: [cat, yes]",
            "{input: {[Tensor[28, 28, 1]], []}, output: {[Category[cat, yes]], []}}",
        ),
        ("input: image\noutput: number", "{input: {[Tensor[?, ?, 3]], []}, output: {[Number], []}}"),
        (
            "input: series of 6 numbers\noutput: category",
            "{input: {[Number[6]], [next]}, output: {[Category], []}}",
        ),
        (
            "input:\n  age: number?\n  town: category\noutput: {label: [0, 1]}",
            "{input: {[age :: Number?, town :: Category], []}, output: {[label :: Category[0, 1]], []}}",
        ),
        (
            '{"input": {"fields": {"v": "tensor 5"}, "pointers": ["l", "r"]}, "output": ["a", "b"]}',
            "{input: {[v :: Tensor[5]], [l, r]}, output: {[Category[a, b]], []}}",
        ),
        (
            "input: {note: optional text}\noutput: numbers 3",
            "{input: {[note :: Text?], []}, output: {[Number[3]], []}}",
        ),
        (IMAGES, IMAGES),
    ],
)
def test_yaml_and_json_say_the_same(friendly: str, text: str) -> None:
    assert read_program(friendly) == parse_program(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the program is empty"),
        ("input: imge\noutput: number", "this phrase is not known"),
        ("input: &a {x: *a}\noutput: number", "aliases"),
        ("input: number", 'exactly the two parts "input" and "output"'),
        ("input: {a: [}\noutput: number", "not readable as YAML"),
        ("input: number\noutput: []", "the list of classes is empty"),
        ("input: {a: series of number}\noutput: number", "describes a whole side"),
    ],
)
def test_a_friendly_program_that_is_wrong_is_explained(text: str, says: str) -> None:
    with pytest.raises(ProgramError, match=says):
        read_program(text)


@dataclass
class Flower:
    petal: float
    weight: float | None
    colour: Literal["red", "white"]
    note: str
    picture: Annotated[Any, Shape(28, 28, 1)]


@dataclass
class Step:
    value: Annotated[Any, Shape(6)]
    next: Step | None


@dataclass
class Endless:
    value: float
    next: Endless


def test_python_type_hints_say_the_same() -> None:
    def classify(flower: Flower) -> Literal["rose", "tulip"]:
        raise AssertionError("only its annotations are read")

    assert str(program_from_function(classify)) == (
        "{input: {[petal :: Number, weight :: Number?, colour :: Category[red, white], note :: Text, "
        "picture :: Tensor[28, 28, 1]], []}, output: {[Category[rose, tulip]], []}}"
    )
    assert (
        str(program_from_types(Step, float))
        == "{input: {[value :: Tensor[6]], [next]}, output: {[Number], []}}"
    )


def test_a_chain_of_type_hints_without_an_end_is_refused() -> None:
    with pytest.raises(ProgramError, match="a chain has to end"):
        program_from_types(Endless, float)
