from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from easel.errors import InvalidInput
from easel.optimise.finite import FiniteGP


def world(seed: int, K: int, rank: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((K, rank))
    return rng.standard_normal(K), W @ W.T / rank


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 50),
    K=st.integers(1, 8),
    rank=st.integers(1, 8),
    picks=st.lists(st.integers(0, 7), max_size=10),
    noise=st.sampled_from([1e-4, 1e-2]),
)
def test_rank_one_updates_equal_the_batch_formula_in_any_order(
    seed: int, K: int, rank: int, picks: list[int], noise: float
) -> None:
    mean, cov = world(seed, K, rank)
    A = [p % K for p in picks]
    y = np.random.default_rng(seed + 1).standard_normal(len(A))
    gp = FiniteGP.prior(mean, cov, noise)
    for k, value in zip(A, y, strict=True):
        gp = gp.observed(k, float(value))
    G = np.linalg.inv(cov[np.ix_(A, A)] + noise * np.eye(len(A)))
    assert np.allclose(gp.mean, mean + cov[:, A] @ G @ (y - mean[A]), atol=1e-6)
    assert np.allclose(gp.var, np.diag(cov - cov[:, A] @ G @ cov[A, :]), atol=1e-6)
    assert (gp.var >= 0).all()
    assert (gp.var <= np.diag(cov) + 1e-12).all()
    back = FiniteGP.prior(mean, cov, noise)
    for k, value in reversed(list(zip(A, y, strict=True))):
        back = back.observed(k, float(value))
    assert np.allclose(gp.mean, back.mean, atol=1e-5)
    assert np.allclose(gp.sd, back.sd, atol=1e-4)


def test_the_column_is_the_posterior_covariance() -> None:
    mean, cov = world(3, 5, 5)
    gp = FiniteGP.prior(mean, cov, 0.01).observed(1, 0.3).observed(4, -0.2)
    A = [1, 4]
    posterior = cov - cov[:, A] @ np.linalg.inv(cov[np.ix_(A, A)] + 0.01 * np.eye(2)) @ cov[A, :]
    assert np.allclose(gp.column(2), posterior[2])


def test_a_failed_trial_teaches_nothing() -> None:
    gp = FiniteGP.prior(np.zeros(3), np.eye(3), 0.01)
    assert gp.observed(0, np.nan) is gp


def test_exact_duplicates_without_noise_are_ordinary() -> None:
    gp = FiniteGP.prior(np.zeros(3), np.ones((3, 3)), 0.0).observed(0, 0.7)
    assert gp.mean.tolist() == [0.7, 0.7, 0.7]
    assert gp.observed(1, 0.9).mean.tolist() == [0.7, 0.7, 0.7]


def test_a_student_process_narrows_for_a_tenant_that_behaves_and_widens_for_one_that_does_not() -> None:
    prior = FiniteGP.prior(np.zeros(4), np.eye(4), 1e-6, dof=4.0)
    calm = prior.observed(0, 0.1).observed(1, -0.1)
    wild = prior.observed(0, 4.0).observed(1, -4.0)
    assert calm.sd[3] < prior.sd[3] < wild.sd[3]
    assert calm.mean[3] == wild.mean[3] == 0.0


def test_an_easier_tenant_is_not_a_wilder_one() -> None:
    prior = FiniteGP.prior(np.zeros(4), np.eye(4) + 1.0, 1e-6, dof=4.0)
    easy = prior.observed(0, 5.0).observed(1, 5.0)
    same = prior.observed(0, 0.0).observed(1, 0.0)
    assert easy.sd[3] == pytest.approx(same.sd[3])


def test_a_running_trial_shrinks_its_kin_but_moves_no_mean() -> None:
    mean, cov = world(1, 4, 2)
    gp = FiniteGP.prior(mean, cov, 0.01, dof=5.0)
    pending = gp.believed(2)
    assert np.allclose(pending.mean, gp.mean)
    assert (pending.sd <= gp.sd + 1e-12).all()
    assert pending.sd[2] < gp.sd[2]


def test_noisier_looks_teach_less() -> None:
    gp = FiniteGP.prior(np.zeros(2), np.eye(2), 0.01)
    assert gp.observed(0, 1.0).sd[0] < gp.observed(0, 1.0, extra_noise=0.5).sd[0] < gp.sd[0]


def test_unfit_priors_are_refused() -> None:
    with pytest.raises(InvalidInput, match="does not fit"):
        FiniteGP.prior(np.zeros(3), np.eye(2), 0.1)
    with pytest.raises(InvalidInput, match="finite"):
        FiniteGP.prior(np.array([np.nan]), np.eye(1), 0.1)
    with pytest.raises(InvalidInput, match="more than 2"):
        FiniteGP.prior(np.zeros(1), np.eye(1), 0.1, dof=1.0)
