"""Mislabelled examples are suggested first."""

from __future__ import annotations

import time

import numpy as np
import pytest
from tests.match import worlds

from easel.match.split import SMALL
from easel.match.suspects import rank_suspects
from easel.match.train import Conditions


@pytest.mark.parametrize("n", [60, SMALL + 100])
def test_flipped_labels_come_first(n: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, (n, 4))
    labels = np.where(x[:, 0] > 0, "up", "down")
    sure = np.flatnonzero(np.abs(x[:, 0]) > 1)[:3]
    labels[sure] = np.where(labels[sure] == "up", "down", "up")
    text = "{input: {[Tensor[4]], []}, output: {[Category], []}}"
    program, examples = worlds.world(text, list(zip(x, labels.tolist(), strict=True)))
    found = rank_suspects(program, examples, Conditions(seed=0, budget_s=60, clock=time.monotonic))
    assert {s.position for s in found[:5]} >= set(sure.tolist())
    assert len(found) == n
