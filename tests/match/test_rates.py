"""The paper's grid of learning rates inside a trial, beside rates as candidates of their own."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.match import worlds

from easel.match.candidate import Candidate
from easel.match.loop import Diverged
from easel.match.packing import RATES
from easel.match.propose import READ_S, Choices, propose_candidates
from easel.match.split import assign_folds
from easel.match.summary import strata, summarise
from easel.match.train import Conditions, Trained, train

CONDITIONS = Conditions(seed=1, budget_s=600.0, clock=time.monotonic, epochs=3)


def run(lr: float | str, conditions: Conditions = CONDITIONS, family: str = "gru") -> Trained:
    program, examples = worlds.waves(24)
    folds = [fold % 2 for fold in assign_folds(strata(program, examples))]
    return train(Candidate(family, (("lr", lr), ("width", 0.25))), program, examples, folds, conditions)


def test_a_grid_keeps_the_networks_of_its_best_rate() -> None:
    inputs = [example.input for example in worlds.waves(24)[1]]
    grid = run("grid")
    alone = {rate: run(rate) for rate in RATES}
    best = min(RATES, key=lambda rate: sum(min(v for _, v in curve) for curve in alone[rate].learned.curves))
    np.testing.assert_allclose(
        grid.model.predict(inputs), alone[best].model.predict(inputs), rtol=1e-4, atol=1e-5
    )
    assert grid.measurement.quality == pytest.approx(alone[best].measurement.quality)


def test_a_grid_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    whole = run("grid", replace(CONDITIONS, checkpoints=tmp_path))
    assert len(list(tmp_path.glob("rate-*-round-*.safetensors"))) == 2 * len(RATES)
    again = run("grid", replace(CONDITIONS, checkpoints=tmp_path))
    assert again.learned.resumed == 2 * len(RATES) * 3
    assert again.measurement.quality == pytest.approx(whole.measurement.quality)


def test_when_every_rate_diverges_the_trial_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("easel.match.fit_rounds.RATES", (1e30, 1e31))
    with pytest.raises(Diverged, match="smaller learning rate"):
        run("grid", family="fcn")


def test_with_rates_inside_a_network_has_one_candidate_that_costs_four() -> None:
    program, examples = worlds.waves(24)
    summary = summarise(program, examples)
    pool = propose_candidates(program, summary)
    inside = propose_candidates(program, summary, Choices(rates_inside=True))
    assert {c.text("lr", "grid") for c in inside} == {"grid"}
    grid = next(c for c in inside if c.family == "gru" and c.number("width", 0) == 0.5)
    one = next(c for c in pool if c.name == "gru(lr=0.003, width=0.5)")
    reading = READ_S * summary.examples  # once, whatever the grid
    assert grid.cost_s - reading == pytest.approx(4 * (one.cost_s - reading))
    assert {c.name for c in inside if c.family == "svm"} == {c.name for c in pool if c.family == "svm"}
