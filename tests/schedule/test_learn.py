"""Priors that are learned from history beside a cold prior."""

from __future__ import annotations

import numpy as np
import pytest

from easel.optimise.arcsine import to_angle, to_quality
from easel.schedule.hope import tuned
from easel.schedule.learn import learn_priors, learned_prior
from easel.schedule.prior import NOISE, Prior
from easel.schedule.scale import in_angles, in_qualities

K = 6
COLD = Prior(np.full(K, 0.7), 0.15**2 * np.ones((K, K)) + 0.1**2 * np.eye(K), NOISE)


def history(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    level = rng.normal(0.0, 0.08, (n, 1))
    each = np.linspace(0.9, 1.25, K) + 0.03 * rng.standard_normal((n, K))
    return to_quality(each + level)


def test_without_history_the_prior_is_the_cold_one() -> None:
    assert learned_prior(np.empty((0, K)), COLD) is COLD


def test_rows_without_any_cell_are_no_history() -> None:
    assert learned_prior(np.full((3, K), np.nan), COLD) is COLD


def test_many_rows_teach_which_candidates_are_good() -> None:
    H = history(60)
    found = learned_prior(H, COLD)
    assert found.mean == pytest.approx(to_angle(H).mean(0), abs=0.02)
    assert np.diag(found.cov).mean() < 0.5 * np.diag(in_angles(COLD).cov).mean()


def test_history_tells_that_tenants_differ_as_a_whole() -> None:
    rng = np.random.default_rng(0)
    level = rng.normal(0.7, 0.1, size=(30, 1))
    H = level + np.linspace(-0.2, 0.2, K)[None, :] + 0.02 * rng.standard_normal((30, K))
    found = learned_prior(H, COLD)
    assert (np.diff(found.mean) > 0).all()
    assert found.cov[0, 5] / np.sqrt(found.cov[0, 0] * found.cov[5, 5]) > 0.8


def test_a_candidate_nobody_has_run_is_average_and_uncertain() -> None:
    gap = history(30)
    gap[:, 2] = np.nan
    found = learned_prior(gap, COLD)
    seen = [0, 1, 3, 4, 5]
    assert found.mean[seen].min() < found.mean[2] < found.mean[seen].max()
    assert found.cov[2, 2] > np.diag(found.cov)[seen].max()


def test_many_rows_that_are_normal_as_they_are_keep_their_scale() -> None:
    rng = np.random.default_rng(4)
    level = rng.choice([0.35, 0.8], size=(120, 1))
    H = np.clip(level + 0.05 * rng.standard_normal((120, K)), 0.0, 1.0)
    assert not learned_prior(H, COLD).arcsine
    assert learned_prior(H[:10], COLD).arcsine
    assert not learned_prior(100.0 * H[:10], COLD).arcsine


def test_beliefs_keep_their_means_from_one_scale_to_the_other() -> None:
    there = in_angles(COLD)
    back = in_qualities(there)
    assert back.mean == pytest.approx(COLD.mean)
    assert back.cov == pytest.approx(COLD.cov)
    assert not back.arcsine
    assert in_qualities(COLD) is COLD


def test_one_row_moves_the_mean_a_little_of_the_way() -> None:
    H = history(1)
    moved = learned_prior(H, COLD).mean - in_angles(COLD).mean
    whole = to_angle(H[0]) - in_angles(COLD).mean
    assert 0.02 < float(moved @ whole) / float(whole @ whole) < 0.6


def test_candidates_that_a_pool_left_out_are_not_taken_for_average() -> None:
    rng = np.random.default_rng(1)
    H = history(30)
    H[rng.uniform(size=30) < 0.9, 0] = np.nan  # the worst one was hardly ever tried
    found = learned_prior(H, COLD)
    assert found.mean[0] == found.mean.min()


def test_properties_move_the_mean_where_history_shows_that_they_matter() -> None:
    rng = np.random.default_rng(2)
    F = rng.standard_normal((80, 2))
    H = to_quality(to_angle(history(80)) + 0.15 * F[:, :1] * np.linspace(-1.0, 1.0, K))
    found = learn_priors(H, COLD, F)
    low, high = found.prior(np.array([-1.5, 0.0])).mean, found.prior(np.array([1.5, 0.0])).mean
    assert high[-1] - low[-1] > 0.2
    assert high[0] - low[0] < -0.2
    idle = learn_priors(history(80), COLD, F)
    assert not idle.slopes.size


def test_hope_that_serves_earlier_tenants_badly_is_lowered() -> None:
    rng = np.random.default_rng(3)
    rows = 1.0 + 0.002 * rng.standard_normal((20, 24))
    rows[:, 0] = 1.2  # one is better than all, at twice the cost
    cost = np.ones((20, 24))
    cost[:, 0] = 2.0
    wide = Prior(rows.mean(0), 0.3**2 * np.eye(24), NOISE, arcsine=True, upside=np.ones(24))
    upside = tuned(wide, rows, cost).upside
    assert upside is not None
    assert upside.max() < 1.0


def test_too_few_rows_leave_hope_as_it_is() -> None:
    prior = Prior(np.full(K, 1.0), 0.01 * np.eye(K), NOISE, arcsine=True, upside=np.ones(K))
    assert tuned(prior, np.full((2, K), 1.0), np.ones((2, K))) is prior
