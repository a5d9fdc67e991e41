from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.covariance import LedoitWolf

from easel.optimise import covariance as c


def factor_rows(n: int, K: int, rank: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((K, rank))
    true = W @ W.T + 0.1 * np.eye(K)
    return rng.multivariate_normal(np.zeros(K), true, size=n), true


def test_ledoit_wolf_equals_scikit_learn() -> None:
    H, _ = factor_rows(15, 20, 3)
    Z = H - H.mean(0)
    assert np.allclose(c.ledoit_wolf(Z), LedoitWolf(assume_centered=True).fit(Z).covariance_, atol=2e-6)


def test_the_row_density_equals_scipy() -> None:
    H, true = factor_rows(6, 4, 2)
    assert np.allclose(c.row_log_likelihoods(H, true), multivariate_normal(np.zeros(4), true).logpdf(H))


def test_rows_of_unequal_spread_are_given_fewer_degrees_of_freedom() -> None:
    rng = np.random.default_rng(0)
    even = rng.standard_normal((80, 12))
    uneven = even * np.exp(rng.normal(0, 0.8, size=(80, 1)))
    assert c.estimate(uneven).dof < c.estimate(even).dof


def test_factor_analysis_recovers_a_low_rank_covariance_better_than_the_sample() -> None:
    H, true = factor_rows(40, 30, 2)
    Z = H - H.mean(0)
    assert np.linalg.norm(c.low_rank_plus_diagonal(2)(Z) - true) < np.linalg.norm(c.sample(Z) - true)


def test_held_out_likelihood_prefers_factors_where_there_are_factors() -> None:
    H, _ = factor_rows(60, 25, 2)
    assert c.estimate(H).method.startswith("factors")


def test_independent_columns_are_shrunk_hard() -> None:
    H = np.random.default_rng(1).standard_normal((20, 15))
    cov = c.estimate(H).cov
    off = np.abs(cov - np.diag(np.diag(cov))).mean()
    sample = np.cov(H.T)
    assert off < 0.5 * np.abs(sample - np.diag(np.diag(sample))).mean()


def test_missing_cells_are_filled_by_row_and_column_effects() -> None:
    level = np.linspace(0.2, 0.9, 40)[:, None] + np.linspace(-0.1, 0.1, 40)[None, :]
    gaps = level.copy()
    gaps[1, 7] = np.nan
    assert c.filled(gaps)[1, 7] == pytest.approx(level[1, 7], abs=0.02)


@pytest.mark.parametrize(
    "H",
    [
        np.full((1, 3), 0.5),
        np.full((6, 3), 0.5),
        np.array([[0.5, np.nan, 0.4], [np.nan, np.nan, np.nan], [0.1, 0.2, np.nan], [0.3, 0.3, 0.3]]),
        np.tile(np.random.default_rng(0).uniform(size=(8, 1)), (1, 5)),
        np.random.default_rng(0).uniform(size=(5, 1)),
    ],
    ids=["one row", "constant", "gaps", "duplicate candidates", "one candidate"],
)
def test_odd_histories_give_a_positive_definite_covariance(H: np.ndarray) -> None:
    found = c.estimate(H)
    assert np.isfinite(found.mean).all()
    assert np.linalg.eigvalsh(found.cov).min() > 0
