"""A model answers a check set before it takes over."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.match import worlds

from easel.errors import Conflict
from easel.match.candidate import Candidate
from easel.match.check import MOST_CHECKED, check_stored
from easel.match.examples import Object
from easel.match.model import Body, Model
from easel.match.train import Conditions, train


class Otherwise:
    """A body that answers what another says, made into something else."""

    kind = "estimator"

    def __init__(self, body: Body, change: Any) -> None:
        self._body, self._change = body, change

    def predict(self, inputs: Sequence[Object]) -> NDArray[Any]:
        found: NDArray[Any] = self._change(self._body.predict(inputs))
        return found

    def save(self, folder: Path) -> None:
        self._body.save(folder)


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, Path, list[Object]]:
    program, examples = worlds.line()
    conditions = Conditions(seed=0, budget_s=20, clock=time.monotonic)
    model = train(
        Candidate("linear"), program, examples, [k % 2 for k in range(len(examples))], conditions
    ).model
    folder = tmp_path_factory.mktemp("model")
    model.save(folder)
    return model, folder, [one.input for one in examples]


def test_a_model_that_answers_as_it_was_trained_passes(line: tuple[Model, Path, list[Object]]) -> None:
    model, folder, inputs = line
    found = check_stored(folder, model, inputs)
    assert found.answered == MOST_CHECKED
    assert found.median_ms > 0


def test_one_that_answers_otherwise_once_stored_does_not(line: tuple[Model, Path, list[Object]]) -> None:
    model, folder, inputs = line
    other = replace(model, body=Otherwise(model.body, lambda found: found + 1.0))
    with pytest.raises(Conflict, match="otherwise than the trained one"):
        check_stored(folder, other, inputs)


def test_one_that_is_slow_does_not(line: tuple[Model, Path, list[Object]]) -> None:
    model, folder, inputs = line
    ticks = iter(np.arange(0.0, 1000.0, 5.0))
    with pytest.raises(Conflict, match=r"one answer takes 5\.0 s"):
        check_stored(folder, model, inputs, clock=lambda: float(next(ticks)))


def test_answers_that_are_not_finite_are_insane(
    line: tuple[Model, Path, list[Object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, folder, inputs = line
    broken = replace(model, body=Otherwise(model.body, lambda found: found * np.nan))
    monkeypatch.setattr("easel.match.check.load_model", lambda folder: broken)
    with pytest.raises(Conflict, match="are not finite"):
        check_stored(folder, model, inputs)
