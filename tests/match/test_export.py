"""Exported models run by themselves and say the same."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.match import worlds
from tests.match.test_train import candidate_of, run
from tests.match.worlds import World

from easel.errors import InvalidInput
from easel.match.export import export_onnx


@pytest.mark.parametrize(
    ("make", "family"),
    [(worlds.table, "logistic_regression"), (worlds.waves, "minirocket"), (worlds.pictures, "convnet")],
)
def test_the_exported_example_runs_and_names_the_same_classes(
    make: Callable[[], World], family: str, tmp_path: Path
) -> None:
    world = make()
    inputs = [example.input for example in world[1][:3]]
    model = run(world, candidate_of(world, family)).model
    export_onnx(model, inputs, tmp_path)
    shown = subprocess.run([sys.executable, tmp_path / "run.py"], capture_output=True, text=True, check=True)
    names = json.loads((tmp_path / "about.json").read_text())["classes"]
    assert [line.split(" ")[0] for line in shown.stdout.splitlines()] == [
        names[k] for k in model.predict(inputs).argmax(1)
    ]
    said = np.array([json.loads(line[line.index("[") :]) for line in shown.stdout.splitlines()])
    np.testing.assert_allclose(said, model.predict(inputs), atol=2e-3)


def test_a_model_that_onnx_would_change_is_refused(tmp_path: Path) -> None:
    world = worlds.table()
    model = run(world, candidate_of(world, "svm")).model
    with pytest.raises(InvalidInput, match="no faithful form in ONNX"):
        export_onnx(model, [example.input for example in world[1]], tmp_path)
    assert not (tmp_path / "model.onnx").exists()
