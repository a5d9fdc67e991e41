"""Answers as files."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from easel.declare.answers import write_answers, write_pictures
from easel.errors import InvalidInput


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_answers_stand_beside_the_rows_under_the_names_of_the_outputs(tmp_path: Path) -> None:
    asked = [{"size": "3", "label": "no"}, {"size": "4", "label": "yes"}]
    answers: list[dict[str, Any]] = [
        {"label": "no", "probabilities": {"no": 0.9, "yes": 0.1}},
        {"error": "expected a number"},
    ]
    write_answers(tmp_path / "a.csv", asked, answers, ["label"])
    first, second = rows_of(tmp_path / "a.csv")
    assert first == {
        "size": "3",
        "label": "no",
        "label (answer)": "no",
        "p(no)": "0.9",
        "p(yes)": "0.1",
        "error": "",
    }
    assert second["error"] == "expected a number"


def test_several_numbers_keep_their_names_and_intervals(tmp_path: Path) -> None:
    answer = {
        "value": [1.0, 2.0],
        "interval": [[0.5, 1.5], [1.0, 3.0]],
        "outputs": {"left": 1.0, "right": 2.0},
    }
    write_answers(tmp_path / "a.csv", [], [answer], ["left", "right"])
    assert rows_of(tmp_path / "a.csv") == [
        {
            "left": "1.0",
            "right": "2.0",
            "left low": "0.5",
            "left high": "1.5",
            "right low": "1.0",
            "right high": "3.0",
        }
    ]


def test_pictures_are_written_as_png_and_nothing_else_is(tmp_path: Path) -> None:
    answer = {"tensor": [[[0.0], [1.0], [0.5]], [[1.0], [0.0], [0.25]]]}
    (path,) = write_pictures(tmp_path / "out", ["a/cell.jpg"], [answer])
    with Image.open(path) as picture:
        assert (path.name, picture.size, picture.getpixel((1, 0))) == ("cell.png", (3, 2), 255)
    with pytest.raises(InvalidInput, match="are pictures"):
        write_answers(tmp_path / "a.csv", [], [answer], ["image"])
    with pytest.raises(InvalidInput, match="is no picture"):
        write_pictures(tmp_path / "out", [], [{"value": 1.0}])
