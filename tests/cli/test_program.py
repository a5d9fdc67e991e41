"""`easel infer-program` and `easel match` on real files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from easel.cli.program import infer_app, look, match_app
from easel.declare.parse import parse_program
from easel.declare.program import Category, Number, Tensor
from easel.errors import InvalidInput


def test_a_semicolon_table_with_a_byte_order_mark_is_understood(tmp_path: Path) -> None:
    rows = "\n".join(f"{i / 3};{'ab'[i % 2]}" for i in range(30))
    (tmp_path / "d.csv").write_text(f"\ufeffsize;label\n{rows}\n", encoding="utf-8")
    program = look(tmp_path / "d.csv", None).program
    assert program.input.fields == (Number(1, "size"),)
    assert program.output.fields == (Category(("a", "b"), "label"),)


def test_the_proposed_program_is_printed_in_a_form_that_reads_back(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("My size,kind\n1,a\n2,b\n3,a\n4,b\n")
    result = CliRunner().invoke(infer_app, [str(tmp_path / "d.csv"), "--json"])
    found = json.loads(result.stdout)
    assert parse_program(found["program"]).input.fields == (Number(1, "My size"),)
    assert found["target"] == "kind"


def test_a_folder_of_pictures_is_understood(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        Image.new("RGB", (30, 20)).save(tmp_path / name / "1.png")
    assert look(tmp_path, None).program.input.fields == (Tensor((20, 30, 3), "image"),)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"a,b\n", "at least one row"),
        (b"a,a\n1,2\n", "same name"),
        (b"\xff\xfe\x00", "cannot be read as CSV"),
    ],
)
def test_a_file_that_is_no_table_is_explained(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "d.csv").write_bytes(content)
    with pytest.raises(InvalidInput, match=says):
        look(tmp_path / "d.csv", None)


def test_match_names_the_template_and_costs_every_candidate() -> None:
    text = "{input: {[Tensor[28, 28, 1]], []}, output: {[Tensor[10]], []}}"
    found = json.loads(CliRunner().invoke(match_app, [text, "--json"]).stdout)
    assert found["template"] == "image classification"
    assert {"convnet", "resnet50", "vgg16"} <= {c["family"] for c in found["candidates"]}
    assert all(c["cost_s"] > 0 for c in found["candidates"])
    assert "image classification" in CliRunner().invoke(match_app, [text]).stdout
