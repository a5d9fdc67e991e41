"""How good an answer is, for each task; larger is better everywhere, so errors are negated."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from easel.errors import InvalidInput
from easel.match.templates import Task

Metric = Callable[[NDArray[Any], NDArray[Any]], float]
"""`(truth, prediction) → quality`. Classification: `(n,)` class numbers against `(n, D)` probabilities."""


def accuracy(truth: NDArray[Any], probabilities: NDArray[Any]) -> float:
    return float(np.mean(probabilities.argmax(1) == truth))


def balanced_accuracy(truth: NDArray[Any], probabilities: NDArray[Any]) -> float:
    """The mean over the classes that occur of the share found."""
    found = probabilities.argmax(1) == truth
    return float(np.mean([found[truth == k].mean() for k in np.unique(truth)]))


def negative_log_loss(truth: NDArray[Any], probabilities: NDArray[Any]) -> float:
    chosen = probabilities[np.arange(len(truth)), truth]
    return float(np.mean(np.log(np.clip(chosen, 1e-15, 1.0))))


def r_squared(truth: NDArray[Any], values: NDArray[Any]) -> float:
    """1 − Σ(y − ŷ)² / Σ(y − ȳ)², over all outputs together, each in units of its own deviation."""
    spread = np.maximum(truth.std(0), 1e-12)
    residual = ((truth - values) / spread) ** 2
    return float(1.0 - residual.mean())


def negative_rmse(truth: NDArray[Any], values: NDArray[Any]) -> float:
    return -float(np.sqrt(np.mean((truth - values) ** 2)))


def negative_mae(truth: NDArray[Any], values: NDArray[Any]) -> float:
    return -float(np.mean(np.abs(truth - values)))


def psnr(truth: NDArray[Any], pictures: NDArray[Any]) -> float:
    """10 log₁₀(range² / mean squared error), in decibels; at most 100."""
    span = max(float(truth.max() - truth.min()), 1e-12)
    error = float(np.mean((truth - pictures) ** 2))
    return float(min(100.0, 10 * np.log10(span**2 / max(error, 1e-12 * span**2))))


def ssim(truth: NDArray[Any], pictures: NDArray[Any], window: int = 7) -> float:
    """Structural similarity (Wang et al. 2004) with a uniform window, the mean over `(n, c, h, w)`."""
    from scipy.ndimage import uniform_filter

    span = max(float(truth.max() - truth.min()), 1e-12)
    window = min(window, truth.shape[2], truth.shape[3])
    size = (1, 1, window, window)

    def blur(x: NDArray[Any]) -> NDArray[Any]:
        out: NDArray[Any] = uniform_filter(np.asarray(x, dtype=np.float64), size)
        return out

    mean_a, mean_b = blur(truth), blur(pictures)
    var_a, var_b = blur(truth**2) - mean_a**2, blur(pictures**2) - mean_b**2
    cov = blur(truth * pictures) - mean_a * mean_b
    c1, c2 = (0.01 * span) ** 2, (0.03 * span) ** 2
    top = (2 * mean_a * mean_b + c1) * (2 * cov + c2)
    return float(np.mean(top / ((mean_a**2 + mean_b**2 + c1) * (var_a + var_b + c2))))


def bit_accuracy(truth: NDArray[Any], probabilities: NDArray[Any]) -> float:
    return float(np.mean((probabilities > 0.5) == (truth > 0.5)))


METRICS: MappingProxyType[Task, MappingProxyType[str, Metric]] = MappingProxyType(
    {
        Task.CLASSIFY: MappingProxyType(
            {
                "accuracy": accuracy,
                "balanced_accuracy": balanced_accuracy,
                "negative_log_loss": negative_log_loss,
            }
        ),
        Task.REGRESS: MappingProxyType(
            {"r2": r_squared, "negative_rmse": negative_rmse, "negative_mae": negative_mae}
        ),
        Task.RECOVER: MappingProxyType({"ssim": ssim, "psnr": psnr}),
        Task.TRANSLATE: MappingProxyType({"r2": r_squared, "negative_rmse": negative_rmse}),
        Task.REBUILD: MappingProxyType({"bit_accuracy": bit_accuracy}),
    }
)
"""The first of each task is its default."""


def metric_for(task: Task, name: str | None = None) -> tuple[str, Metric]:
    """The named metric of a task, or its default."""
    known = METRICS[task]
    chosen = name or next(iter(known))
    if chosen not in known:
        raise InvalidInput(f"{task.value} has the metrics {', '.join(known)}, not {chosen}")
    return chosen, known[chosen]
