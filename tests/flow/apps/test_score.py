"""Whole files through a model: every row answered once, in little memory, with the model on record."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from easel.errors import InvalidInput
from easel.flow.apps.rows import encoding_of, objects_in
from easel.flow.apps.score import as_reference
from easel.flow.apps.score_job import score
from easel.flow.apps.trial import learn
from easel.match.stored import StoredPair, write_lines

PROGRAM = "{input: {[size :: Number, town :: Category], []}, output: {[sold :: Category[no, yes]], []}}"
ABOUT = {
    "app": "shop",
    "program": PROGRAM,
    "model": "shop-model:3",
    "candidate": "linear",
    "source": "/@rows:3",
}


@dataclass(frozen=True)
class Place:
    arguments: dict[str, Any]
    input: Path
    output: Path
    checkpoint: Path = Path("unused")

    def asked_to_give_way(self) -> bool:
        return False


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds a trained model below its key."""
    folder = tmp_path_factory.mktemp("model")
    rng = np.random.default_rng(0)
    pairs = [
        StoredPair(f"{k:032x}", k % 5, {"size": float(s), "town": "Bern"}, "yes" if s > 0 else "no")
        for k, s in enumerate(rng.normal(size=60))
    ]
    (folder / "in").mkdir()
    (folder / "in" / "a.jsonl").write_bytes(b"".join(write_lines(pairs)))
    candidate = {"family": "logistic_regression", "settings": {"C": 1.0}, "cost_s": 1.0, "promise": 0.5}
    arguments = {"program": PROGRAM, "candidate": candidate, "seed": 0, "budget_s": 60.0}
    learn(Place(arguments, folder / "in", folder / "out"))
    return folder / "out"


def scored(
    model: Path, data: Path, tmp_path: Path, styles: dict[str, dict[str, str]] | None = None
) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """The job's result and the rows of predictions.csv for the files in `data`."""
    place = tmp_path / "input"
    for part in (model, data):
        for path in part.rglob("*"):
            if path.is_file():
                target = place / path.relative_to(part)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(path.read_bytes())
    key = next(model.iterdir()).name
    (tmp_path / "output").mkdir()
    wanted = {"model": f"/{key}", "metric": "accuracy", "about": ABOUT, "styles": styles or {}}
    result = score(Place(wanted, place, tmp_path / "output"))
    with (tmp_path / "output" / "predictions.csv").open(newline="") as file:
        return result, list(csv.DictReader(file))


def test_every_row_is_answered_with_its_own_cells_beside_it(model: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    lines = [f"{k};{'1,5' if k % 2 else '-1,5'};Bern;{'yes' if k % 2 else 'no'}" for k in range(1, 1201)]
    lines[700] = "701;tall;Bern;no"
    (data / "rows.csv").write_text("id;size;town;sold\n" + "\n".join(lines), encoding="cp1252")
    result, rows = scored(model, data, tmp_path)
    assert (result["objects"], result["errors"]) == (1200, 1)
    assert result["model"] == "shop-model:3"
    assert json.loads((tmp_path / "output" / "scored.json").read_text())["source"] == "/@rows:3"
    assert [row["id"] for row in rows] == [str(k) for k in range(1, 1201)]
    assert "expected a number" in rows[700]["error"]
    fine = [row for row in rows if not row["error"]]
    assert all(row["sold (answer)"] == row["sold"] for row in fine), "the truth stays beside the answer"
    assert all(float(row["p(no)"]) + float(row["p(yes)"]) == pytest.approx(1.0, abs=1e-5) for row in fine)


def test_several_files_of_several_kinds_are_told_apart(model: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.csv").write_text("size,town\n2.0,Bern\n")
    (data / "b.jsonl").write_text('{"size": -2.0, "town": "Bern"}\n{"input": {"size": 2, "town": "Bern"}}\n')
    result, rows = scored(model, data, tmp_path)
    assert [(row["file"], row["sold"]) for row in rows] == [
        ("a.csv", "yes"),
        ("b.jsonl", "no"),
        ("b.jsonl", "yes"),
    ]
    assert result["errors"] == 0


def test_a_missing_value_is_answered_with_a_note_and_formulas_stay_words(model: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.csv").write_text("size,town,remark\n,Bern,=cmd()\n-2,Bern,-3\n")
    result, rows = scored(model, data, tmp_path)
    assert "size is missing" in result["notes"][0]
    assert [row["remark"] for row in rows] == ["'=cmd()", "-3"]


def test_a_file_is_read_as_the_examples_were_written(model: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.csv").write_text("size;town\n-1,250;Bern\n")
    (data / "b.jsonl").write_text('{"size": "-1,250", "town": "Bern"}\n')
    (data / "c.csv").write_text("size,town\n-1.25,Bern\n")
    result, rows = scored(model, data, tmp_path, {"input.size": {"decimal": ","}})
    assert len({row["p(yes)"] for row in rows}) == 1, "each is minus one and a quarter"
    assert ["decimal points" in note for note in result["notes"]] == [True]


def test_a_word_that_no_example_held_is_noted_once_for_the_file(model: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    rows = "".join(f"{k},{'Genf' if k % 2 else 'Bern'}\n" for k in range(1100))
    (data / "a.csv").write_text(f"size,town\n{rows}")
    result, _ = scored(model, data, tmp_path)
    assert result["notes"] == ["town: no example held Genf: answered without it"]


def test_files_that_cannot_be_scored_are_refused_in_words(model: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "notes.txt").write_text("hello")
    with pytest.raises(InvalidInput, match="there is nothing to score"):
        scored(model, data, tmp_path)


def test_an_empty_table_is_refused(model: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.csv").write_text("size,town\n")
    with pytest.raises(InvalidInput, match="no row"):
        scored(model, data, tmp_path)


def test_encodings_are_told_without_reading_the_file_at_once(tmp_path: Path) -> None:
    for encoding, found in (("utf-8", "utf-8-sig"), ("utf-16", "utf-16"), ("cp1252", "cp1252")):
        (tmp_path / "a.csv").write_text("Zürich", encoding=encoding)
        assert encoding_of(tmp_path / "a.csv") == found


def test_rows_are_read_as_they_are_asked_for(tmp_path: Path) -> None:
    from easel.declare.parse import parse_program

    path = tmp_path / "a.jsonl"
    path.write_text('{"size": 1, "town": "Bern"}\nnot json\n')
    found = objects_in(tmp_path, [path], parse_program(PROGRAM))
    assert next(found).value == {"size": 1, "town": "Bern"}
    with pytest.raises(InvalidInput, match="line 2 is not JSON"):
        next(found)


def test_a_file_set_is_named_as_people_name_it() -> None:
    assert as_reference("rows:3") == "/@rows:3"
    assert as_reference("/new/rows.csv") == "/new/rows.csv"
