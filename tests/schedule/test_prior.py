from __future__ import annotations

import numpy as np
import pytest

from easel.schedule.prior import from_features, from_history, quality_vector_prior, sample_prior, weak

rng = np.random.default_rng(0)
LEVEL = rng.normal(0.7, 0.1, size=(30, 1))
HISTORY = LEVEL + np.linspace(-0.2, 0.2, 6)[None, :] + 0.02 * rng.standard_normal((30, 6))


def test_history_tells_which_candidates_are_good_and_that_tenants_differ() -> None:
    prior = from_history(HISTORY)
    assert (np.diff(prior.mean) > 0).all()
    correlation = prior.cov[0, 5] / np.sqrt(prior.cov[0, 0] * prior.cov[5, 5])
    assert correlation > 0.8


@pytest.mark.parametrize("build", [from_history, sample_prior, quality_vector_prior])
def test_no_history_gives_a_weak_prior(build: object) -> None:
    assert callable(build)
    prior = build(np.empty((0, 4)))
    assert prior.mean.tolist() == weak(4).mean.tolist()


def test_a_candidate_nobody_has_run_is_average_and_uncertain() -> None:
    gap = HISTORY.copy()
    gap[:, 2] = np.nan
    prior = from_history(gap)
    seen = [0, 1, 3, 4, 5]
    assert prior.mean[2] == pytest.approx(prior.mean[seen].mean(), abs=1e-6)
    assert prior.cov[2, 2] > np.diag(prior.cov)[seen].max()
    assert np.linalg.eigvalsh(prior.cov).min() > 0


def test_features_tell_an_unseen_candidate_what_its_kin_did() -> None:
    gap = HISTORY.copy()
    gap[:, 5] = np.nan
    features = np.arange(6.0)[:, None]
    plain, informed = from_history(gap), from_history(gap, features)
    truth = HISTORY[:, 5].mean()
    assert abs(informed.mean[5] - truth) < abs(plain.mean[5] - truth)


def test_features_count_less_as_history_grows() -> None:
    features = rng.uniform(size=(6, 2))
    few, many = from_history(HISTORY[:4], features), from_history(HISTORY, features)
    assert np.abs(many.mean - HISTORY.mean(0)).max() < np.abs(few.mean - HISTORY[:4].mean(0)).max()


def test_features_alone_correlate_neighbours_most() -> None:
    prior = from_features(np.array([[0.0], [0.1], [5.0]]))
    assert prior.cov[0, 1] > prior.cov[0, 2]


def test_quality_vectors_correlate_candidates_that_did_alike() -> None:
    twins = HISTORY.copy()
    twins[:, 1] = twins[:, 0]
    prior = quality_vector_prior(twins)
    assert prior.cov[0, 1] > prior.cov[0, 5]
    assert prior.cov[0, 1] == pytest.approx(prior.cov[0, 0], rel=1e-6)
