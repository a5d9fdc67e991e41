"""Mean and covariance from rows with gaps."""

from __future__ import annotations

import numpy as np
import pytest

from easel.optimise.covariance import filled
from easel.optimise.missing import Moments, posterior_moments


def world(n: int) -> tuple[Moments, np.ndarray]:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(5, 5))
    truth = Moments(np.array([0.5, 0.6, 0.7, 0.8, 0.4]), 0.01 * (A @ A.T + np.eye(5)))
    return truth, rng.multivariate_normal(truth.mean, truth.cov, n)


VAGUE = Moments(np.full(5, 0.6), 0.05 * np.eye(5))


def test_no_rows_leave_the_prior_as_it_is() -> None:
    assert posterior_moments(np.empty((0, 5)), VAGUE, 5.0) is VAGUE


def test_whole_rows_count_beside_the_rows_of_the_prior() -> None:
    _, X = world(20)
    found = posterior_moments(X, VAGUE, 5.0)
    assert found.mean == pytest.approx((5.0 * VAGUE.mean + X.sum(0)) / 25.0)


def test_gaps_that_hang_on_what_was_seen_do_not_mislead() -> None:
    truth, X = world(3000)
    H = X.copy()
    H[X[:, 0] < truth.mean[0], 1:3] = np.nan  # where the first did badly nobody tried the next two
    found = posterior_moments(H, VAGUE, 1.0)
    assert np.abs(found.mean - truth.mean).max() < 0.02
    assert np.abs(filled(H).mean(0) - truth.mean).max() > 0.03


def test_a_gap_is_filled_with_what_the_rest_of_its_row_says() -> None:
    cov = np.array([[1.0, 0.9], [0.9, 1.0]])
    X, spread = Moments(np.zeros(2), cov).completed(np.array([[2.0, np.nan]]))
    assert X[0, 1] == pytest.approx(1.8)
    assert spread[1, 1] == pytest.approx(1.0 - 0.81, abs=1e-6)


def test_an_empty_row_says_nothing() -> None:
    H = np.array([[np.nan] * 5])
    assert VAGUE.likelihoods(H)[0] == 0.0
    assert VAGUE.completed(H)[0][0] == pytest.approx(VAGUE.mean)
