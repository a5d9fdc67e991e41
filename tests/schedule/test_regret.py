"""MM-GP-EI's incremental uncertainty and bound."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from easel.schedule.policies import named
from easel.schedule.prior import Prior
from easel.schedule.regret import incremental_uncertainties, regret_report, total_uncertainty
from easel.schedule.simulate import World, simulate, tenants
from easel.schedule.state import PoolDevice
from easel.schedule.table import matern_world


def exact(cov: np.ndarray, s: int) -> float:
    K, best = len(cov), 0.0
    for S in itertools.combinations(range(K), s):
        for x in S:
            rest = [k for k in S if k != x]
            below = np.linalg.det(cov[np.ix_(rest, rest)]) if rest else 1.0
            best = max(best, float(np.sqrt(np.linalg.det(cov[np.ix_(S, S)]) / below)))
    return best


def test_the_incremental_uncertainty_is_that_of_all_subsets_of_a_small_world() -> None:
    A = np.random.default_rng(0).normal(size=(5, 5))
    cov = A @ A.T + 0.1 * np.eye(5)
    found = incremental_uncertainties(cov)
    for s in range(1, 6):
        assert found[s - 1] <= exact(cov, s) + 1e-9
        assert found[s - 1] == pytest.approx(exact(cov, s), rel=0.15)


def test_independent_candidates_stay_as_uncertain_and_twins_add_nothing() -> None:
    assert incremental_uncertainties(np.eye(4)) == pytest.approx(np.ones(4))
    assert incremental_uncertainties(np.ones((4, 4)))[1:] == pytest.approx(np.zeros(3), abs=1e-3)


def test_other_tenants_tell_nothing_and_count_first() -> None:
    priors = {"a": Prior(np.zeros(3), np.ones((3, 3))), "b": Prior(np.zeros(3), np.ones((3, 3)))}
    assert total_uncertainty(priors, 4) == pytest.approx(3.0)
    assert total_uncertainty(priors, 6) == pytest.approx(3.0, abs=1e-2)


def test_a_run_is_reported_with_its_regret_and_the_bound() -> None:
    table, cov = matern_world(np.random.default_rng(0), 4, 6)
    prior = Prior(np.full(6, float(table.quality.mean())), cov)
    world = World(table, (PoolDevice("d0"), PoolDevice("d1")))
    horizon = 0.5 * table.total_cost
    run = simulate(world, named("mm-gp-ei"), tenants(world, prior), horizon, np.random.default_rng(0))
    said = regret_report(world, run, dict.fromkeys(table.tenants, prior), horizon)
    assert said.measured == pytest.approx(4 * horizon * run.curve.area(horizon))
    assert said.bound > said.uncertainty > 0.0
