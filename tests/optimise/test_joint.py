from __future__ import annotations

import numpy as np
import pytest
import torch

from easel.errors import InvalidInput
from easel.optimise.joint import JointGP

rng = np.random.default_rng(0)
N, K = 4, 5
x = rng.uniform(size=(K, 2))
S = np.exp(-((x[:, None] - x[None]) ** 2).sum(2))
B = 0.5 + 0.5 * np.eye(N)
MEAN = rng.normal(size=(N, K))
SEEN = [(int(rng.integers(N)), int(rng.integers(K)), float(rng.normal())) for _ in range(12)]


def told(process: JointGP) -> JointGP:
    for i, k, y in SEEN:
        process = process.observed(i, k, y)
    return process


def test_updates_equal_the_batch_posterior_of_the_kronecker_covariance() -> None:
    process = told(JointGP.prior(MEAN, B, S, 0.1, capacity=2))
    full = np.kron(B, S)
    A = [i * K + k for i, k, _ in SEEN]
    y = np.array([v for *_, v in SEEN])
    G = np.linalg.inv(full[np.ix_(A, A)] + 0.1 * np.eye(len(A)))
    mean = MEAN.reshape(-1) + full[:, A] @ G @ (y - MEAN.reshape(-1)[A])
    cov = full - full[:, A] @ G @ full[A, :]
    assert np.allclose(process.mean.reshape(-1), mean, atol=1e-4)
    assert np.allclose(process.var.reshape(-1), np.diag(cov), atol=1e-4)
    assert np.allclose(process.columns(1, 2).reshape(-1), cov[K + 2], atol=1e-4)
    assert np.allclose(process.within(3)[1], cov[3 * K :, 3 * K :], atol=1e-4)


def test_a_version_that_is_continued_twice_keeps_both_stories_apart() -> None:
    start = told(JointGP.prior(MEAN, B, S, 0.1, capacity=100))
    up, down = start.observed(0, 0, 3.0), start.observed(0, 0, -3.0)
    again = start.observed(0, 0, 3.0).observed(1, 1, 0.0)
    assert np.allclose(again.mean, up.observed(1, 1, 0.0).mean)
    assert up.mean[0, 0] > start.mean[0, 0] > down.mean[0, 0]


def test_torch_follows_numpy() -> None:
    ours = told(JointGP.prior(MEAN, B, S, 0.1))
    theirs = told(JointGP.prior(torch.tensor(MEAN), torch.tensor(B), torch.tensor(S), 0.1))
    assert np.allclose(ours.mean, theirs.mean.numpy(), atol=1e-5)
    assert np.allclose(ours.sd, theirs.sd.numpy(), atol=1e-4)


def test_a_failed_trial_teaches_nothing_and_misfits_are_refused() -> None:
    start = JointGP.prior(MEAN, B, S, 0.1)
    assert start.observed(0, 0, np.nan) is start
    with pytest.raises(InvalidInput, match="do not fit"):
        JointGP.prior(MEAN, S, B, 0.1)
