"""YAML that was written to be a burden: refused by its shape, before anything is built of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from easel.declare.friendly import read_program
from easel.declare.program import Category, Program
from easel.declare.yaml_text import MAX_LENGTH
from easel.errors import InvalidInput
from easel.run.conda import read_conda_file
from easel.wire.study import study_fields


def as_conda_file(folder: Path) -> Callable[[str], object]:
    def read(text: str) -> object:
        path = folder / "environment.yml"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        return read_conda_file(path)

    return read


@pytest.fixture(params=["program", "study", "conda"])
def read(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], object]:
    readers = {"program": read_program, "study": study_fields, "conda": as_conda_file(tmp_path)}
    return readers[request.param]


def laughs(levels: int) -> str:
    """A few hundred characters of aliases that stand for 8 to the power of `levels` words."""
    lists = ["&a0 [x, x, x, x, x, x, x, x]"]
    lists += [f"&a{i} [{', '.join([f'*a{i - 1}'] * 8)}]" for i in range(1, levels)]
    return f"input: number\noutput: [{', '.join(lists)}]\n"


def test_aliases_that_stand_for_gigabytes_are_refused(read: Callable[[str], object]) -> None:
    with pytest.raises(InvalidInput, match="aliases"):
        read(laughs(30))


@pytest.mark.parametrize("opening", ["[", "- ", "input: {a: ", "? "])
def test_what_nests_too_deeply_is_refused_however_it_nests(
    read: Callable[[str], object], opening: str
) -> None:
    with pytest.raises(InvalidInput, match="nests too deeply"):
        read(opening + opening.removeprefix("input: ") * 10_000)


def test_a_text_that_is_too_long_is_refused(read: Callable[[str], object]) -> None:
    with pytest.raises(InvalidInput, match="are the most"):
        read("input: number\noutput: [" + "a, " * (MAX_LENGTH // 3) + "b]")


def test_half_a_character_is_refused(read: Callable[[str], object]) -> None:
    with pytest.raises(InvalidInput):
        read("input: number\noutput: [a, \ud800]")


def test_a_long_program_means_what_a_short_one_does() -> None:
    """Beyond some length another reader builds the values: a class called `yes` or `1.0` stays a word there too."""
    classes = ["yes", "1.0", "0x1f", "null", *(f"class {number}" for number in range(3_000))]
    long = read_program(f"input: number\noutput: [{', '.join(classes)}]")
    short = read_program(f"input: number\noutput: [{', '.join(classes[:10])}]")
    assert _classes(long)[:10] == _classes(short)


def _classes(program: Program) -> tuple[str, ...]:
    (field,) = program.output.fields
    assert isinstance(field, Category)
    return tuple(field.values)
