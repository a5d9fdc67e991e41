"""The gallery's data are what its pages say: each is made, looked at, and proposed as the page tells."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from easel.cli.program import look

MAKE = Path(__file__).parents[2] / "docs" / "gallery" / "make.py"


@pytest.fixture(scope="module")
def gallery() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gallery_make", MAKE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def told(gallery: ModuleType, name: str, folder: Path, target: str | None) -> str:
    proposal = look(gallery.NAMES[name](folder), target)
    return "\n".join([*proposal.reasons, str(proposal.program)])


def test_cells_are_pictures_of_two_classes(gallery: ModuleType, tmp_path: Path) -> None:
    assert "Tensor[32, 32, 1]" in (text := told(gallery, "cells", tmp_path, None))
    assert "Category[dividing, resting]" in text


def test_leaves_are_what_the_tutorial_without_programming_learns(gallery: ModuleType, tmp_path: Path) -> None:
    folder = gallery.NAMES["leaves"](tmp_path)
    assert "Category[healthy, sick]" in str(look(folder / "my-leaves", None).program)
    tutorial = (MAKE.parents[1] / "tutorial" / "apps.md").read_text()
    assert "python docs/gallery/make.py leaves" in tutorial
    assert (folder / "new-leaf.jpg").is_file()
    assert "$(" not in tutorial, "who does not program is asked for no shell's tricks"


def test_sensors_are_proposed_as_series(gallery: ModuleType, tmp_path: Path) -> None:
    assert "the steps of a series" in told(gallery, "sensors", tmp_path, "state")


def test_patients_have_gaps_dates_and_an_id_that_is_left_out(gallery: ModuleType, tmp_path: Path) -> None:
    text = told(gallery, "patients", tmp_path, "comes_back")
    assert '"id" is left out' in text
    assert "pressure :: Number?" in text
    assert "admitted :: Date" in text


def test_notes_are_text(gallery: ModuleType, tmp_path: Path) -> None:
    assert "note :: Text" in told(gallery, "texts", tmp_path, "topic")


def test_the_study_uses_every_dimension_of_its_script(gallery: ModuleType, tmp_path: Path) -> None:
    folder = gallery.NAMES["tuning"](tmp_path)
    script, study = (folder / "train.py").read_text(), (folder / "study.yaml").read_text()
    for name in ("rate", "width", "epochs"):
        assert f"--{name}" in script
        assert f"{{{name}}}" in study
        assert f"name: {name}," in study
    assert "[EASEL_METRIC] accuracy=" in script
