from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import kernels as peer

from easel.optimise.kernels import (
    Constant,
    FiniteRank,
    Kernel,
    Linear,
    Matern32,
    Matern52,
    SquaredExponential,
    Stationary,
    cost_basis,
    log_cost_basis,
    quality_basis,
)

X = np.random.default_rng(0).uniform(0.05, 1.0, (12, 3))

KERNELS: dict[str, Kernel] = {
    "matern52": Matern52.ard(3),
    "matern52-one-length": Matern52(np.array([0.3])),
    "matern32": Matern32(np.log([0.2, 0.5, 2.0])),
    "squared-exponential": SquaredExponential(np.log([0.2, 0.5, 2.0])),
    "some-columns": Matern52.ard(2, columns=(0, 2)),
    "linear": Linear(np.array([0.1, -0.2, 0.3, 0.4])),
    "quality-of-size": FiniteRank(2, quality_basis, np.array([0.1, 0.4, -0.3])),
    "cost-of-size": FiniteRank(2, cost_basis, np.array([0.1, 0.4, -0.3])),
    "log-cost-of-size": FiniteRank(2, log_cost_basis, np.array([0.1, 0.4, -0.3])),
    "fabolas": Constant() * Matern52.ard(2, columns=(0, 1)) * FiniteRank(2),
    "sum": Matern32.ard(3) + Linear(np.zeros(4)),
}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_a_kernel_is_symmetric_positive_and_agrees_with_its_diagonal(kernel: Kernel) -> None:
    K = kernel(X, X)
    assert np.allclose(K, K.T)
    assert np.linalg.eigvalsh(K).min() > -1e-9
    assert np.allclose(np.diag(K), kernel.diag(X))


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_the_analytic_gradient_is_the_finite_difference(kernel: Kernel) -> None:
    rng = np.random.default_rng(1)
    W = rng.standard_normal((12, 12))
    W = W + W.T
    numeric = np.empty(len(kernel.theta))
    for i in range(len(numeric)):
        step = np.zeros(len(numeric))
        step[i] = 1e-6
        up, down = kernel.at(kernel.theta + step)(X, X), kernel.at(kernel.theta - step)(X, X)
        numeric[i] = (W * (up - down)).sum() / 2e-6
    assert np.allclose(kernel.pull(X, W), numeric, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Matern52, lambda length: peer.Matern(length, nu=2.5)),
        (Matern32, lambda length: peer.Matern(length, nu=1.5)),
        (SquaredExponential, lambda length: peer.RBF(length)),
    ],
)
def test_stationary_kernels_equal_scikit_learn(
    ours: type[Stationary], theirs: Callable[[np.ndarray], peer.Kernel]
) -> None:
    length = np.array([0.3, 1.0, 2.0])
    assert np.allclose(ours(np.log(length))(X, X[:5]), theirs(length)(X, X[:5]), atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_torch_gives_the_same_matrix(kernel: Kernel) -> None:
    assert np.allclose(kernel(torch.tensor(X), torch.tensor(X[:4])).numpy(), kernel(X, X[:4]))
