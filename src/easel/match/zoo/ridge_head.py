"""A linear layer that is solved at once: ridge regression whose strength is chosen by leaving one out."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

ALPHAS = np.logspace(-3, 3, 13)
"""Strengths in units of the features' deviation, as RidgeClassifierCV is used with ROCKET and its kin."""
MOST_DUAL = 5_000
"""Up to so many examples the exact leave-one-out error is computed; above, a held-out tenth decides."""


class RidgeHead(nn.Module):
    """`(n, features) → (n, outputs)`; all its numbers are buffers, so it stores and exports."""

    weight: Tensor
    intercept: Tensor
    centre: Tensor
    spread: Tensor

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(features))
        self.register_buffer("spread", torch.ones(features))
        self.register_buffer("weight", torch.zeros(features, outputs))
        self.register_buffer("intercept", torch.zeros(outputs))

    def forward(self, features: Tensor) -> Tensor:
        return ((features - self.centre) / self.spread) @ self.weight + self.intercept

    @torch.no_grad()
    def solve(self, features: Tensor, targets: NDArray[Any]) -> float:
        """Fit on features `(n, f)` and targets `(n, outputs)`; the strength that was chosen."""
        x = features.double().numpy()
        self.centre.copy_(torch.from_numpy(x.mean(0)))
        deviation = x.std(0)
        self.spread.copy_(torch.from_numpy(np.where(deviation > 1e-8, deviation, np.inf)))
        x = np.nan_to_num((x - x.mean(0)) / self.spread.numpy().astype(np.float64))
        y = np.asarray(targets, dtype=np.float64)
        offset = y.mean(0)
        solver = solve_dual if len(x) <= min(MOST_DUAL, x.shape[1]) or len(x) <= 500 else solve_primal
        weight, alpha = solver(x, y - offset)
        self.weight.copy_(torch.from_numpy(weight))
        self.intercept.copy_(torch.from_numpy(offset))
        return alpha


def solve_dual(x: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[Any], float]:
    """Solves by eigenvalues of the kernel matrix, with the leave-one-out error of every strength."""
    values, vectors = np.linalg.eigh(x @ x.T)
    values = np.maximum(values, 0.0)
    turned, squares = vectors.T @ y, vectors**2
    best: tuple[float, float, NDArray[Any]] | None = None
    for alpha in ALPHAS:
        inverse = 1.0 / (values + alpha)
        coefficients = vectors @ (inverse[:, None] * turned)
        left_out = coefficients / (squares @ inverse)[:, None]
        error = float(np.mean(left_out**2))
        if best is None or error < best[0]:
            best = error, float(alpha), coefficients
    assert best is not None
    return x.T @ best[2], best[1]


def solve_primal(x: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[Any], float]:
    """Solves where examples outnumber features: every tenth example decides which strength is best."""
    held = np.arange(len(x)) % 10 == 0
    gram, right = x[~held].T @ x[~held], x[~held].T @ y[~held]
    best: tuple[float, float] | None = None
    for alpha in ALPHAS[::3]:
        weight = np.linalg.solve(gram + alpha * np.eye(len(gram)), right)
        error = float(np.mean((x[held] @ weight - y[held]) ** 2))
        if best is None or error < best[0]:
            best = error, float(alpha)
    assert best is not None
    whole = x.T @ x
    whole[np.diag_indices_from(whole)] += best[1]
    return np.linalg.solve(whole, x.T @ y), best[1]
