"""Generated sources: typed, runnable, without a token."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from easel.declare.friendly import read_program
from easel.declare.generate import dataclass_source, generate, identifier

PROGRAMS = [
    'input: {"Sepal length": number, class: category, weight: optional number}\noutput: [a, b]',
    "input: image 28 x 28\noutput: category",
    "{input: {[Tensor[3], Category[x, y]], [next]}, output: {[Number], []}}",
    "{input: {[Tensor[5]], [left, right]}, output: {[Tensor[3]], []}}",
    "{input: {[Text], []}, output: {[Number[4]], []}}",
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_source_compiles(program: str) -> None:
    sources = generate(read_program(program), "my app", "app_1", "lab", "http://here:1")
    assert sorted(sources) == ["feed.py", "infer.py", "my_app_app.py", "refine.py"]
    for name, text in sources.items():
        compile(text, name, "exec")
    assert "'app_1'" in sources["my_app_app.py"]
    assert "'http://here:1'" in sources["my_app_app.py"]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """The generated module of a program, imported as its user would."""

    def made(program: str) -> Any:
        (source,) = [
            text
            for name, text in generate(
                read_program(program), "my app", "app_1", "lab", "http://here:1"
            ).items()
            if name == "my_app_app.py"
        ]
        (tmp_path / "my_app_app.py").write_text(source, encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "my_app_app", raising=False)
        return importlib.import_module("my_app_app")

    return made


def test_names_that_python_forbids_are_changed_and_sent_as_they_were(load: Callable[[str], Any]) -> None:
    made = load(PROGRAMS[0])
    one = made.Input(sepal_length=1.0, class_="x")
    assert made._input(one) == {"Sepal length": 1.0, "class": "x", "weight": None}


def test_a_chain_is_sent_as_a_list_of_its_steps(load: Callable[[str], Any]) -> None:
    made = load(PROGRAMS[2])
    last = made.Input([4, 5, 6], "y")
    first = made.Input([1, 2, 3], "x", last)
    assert made._input(first) == [
        {"x0": [1, 2, 3], "x1": "x"},
        {"x0": [4, 5, 6], "x1": "y"},
    ]


def test_a_tree_is_sent_as_nested_objects(load: Callable[[str], Any]) -> None:
    made = load(PROGRAMS[3])
    leaf = made.Input([0] * 5)
    root = made.Input([1] * 5, left=leaf)
    assert made._input(root) == {"x": [1] * 5, "left": {"x": [0] * 5}}


def test_classes_become_a_type() -> None:
    assert "Literal['a', 'b']" in dataclass_source(read_program(PROGRAMS[0]).output, "Output")


@pytest.mark.parametrize(
    ("name", "made"), [("Sepal length", "sepal_length"), ("class", "class_"), ("1st", "x1st")]
)
def test_identifiers(name: str, made: str) -> None:
    assert identifier(name) == made
