from __future__ import annotations

import numpy as np
import pytest

from easel.schedule.prior import quality_vector_prior, sample_prior, weak

rng = np.random.default_rng(0)
LEVEL = rng.normal(0.7, 0.1, size=(30, 1))
HISTORY = LEVEL + np.linspace(-0.2, 0.2, 6)[None, :] + 0.02 * rng.standard_normal((30, 6))


@pytest.mark.parametrize("build", [sample_prior, quality_vector_prior])
def test_no_history_gives_a_weak_prior(build: object) -> None:
    assert callable(build)
    prior = build(np.empty((0, 4)))
    assert prior.mean.tolist() == weak(4).mean.tolist()


def test_quality_vectors_correlate_candidates_that_did_alike() -> None:
    twins = HISTORY.copy()
    twins[:, 1] = twins[:, 0]
    prior = quality_vector_prior(twins)
    assert prior.cov[0, 1] > prior.cov[0, 5]
    assert prior.cov[0, 1] == pytest.approx(prior.cov[0, 0], rel=1e-6)
