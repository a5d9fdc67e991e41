"""How good an answer is, for each task; larger is better everywhere, so errors are negated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from easel.errors import InvalidInput
from easel.match.costs import negative_cost, read_costs
from easel.match.kinds import Task

SPREAD = 1.645
"""So many deviations to either side hold the central 90 %."""

Metric = Callable[[NDArray[Any], NDArray[Any]], float]
"""`(truth, prediction) → quality`. Classification: `(n,)` class numbers against `(n, D)` probabilities."""


def accuracy(truth: NDArray[Any], probabilities: NDArray[Any]) -> float:
    return float(np.mean(probabilities.argmax(1) == truth))


def balanced_accuracy(truth: NDArray[Any], probabilities: NDArray[Any]) -> float:
    """The mean over the classes that occur of the share found."""
    found = probabilities.argmax(1) == truth
    return float(np.mean([found[truth == k].mean() for k in np.unique(truth)]))


def f1(truth: NDArray[Any], probabilities: NDArray[Any]) -> float:
    """Returns the rarer class's F₁ of two; of more the mean over those that occur."""
    answered = probabilities.argmax(1)
    classes = _judged(truth, probabilities.shape[1])
    scores = []
    for k in classes:
        right = np.sum((answered == k) & (truth == k))
        scores.append(2 * right / max(1, np.sum(answered == k) + np.sum(truth == k)))
    return float(np.mean(scores))


def roc_auc(truth: NDArray[Any], probabilities: NDArray[Any]) -> float:
    """The chance that an example of a class is ranked above one of another; the mean over the classes."""
    return float(np.mean([_auc(truth == k, probabilities[:, k]) for k in _told_apart(truth)] or [0.5]))


def average_precision(truth: NDArray[Any], probabilities: NDArray[Any]) -> float:
    """The mean precision where each example of a class is found, rarest class of two, mean over more."""
    classes = [k for k in _judged(truth, probabilities.shape[1]) if (truth == k).any()]
    return float(np.mean([_precision(truth == k, probabilities[:, k]) for k in classes] or [0.0]))


def _told_apart(truth: NDArray[Any]) -> list[int]:
    return [int(k) for k in np.unique(truth) if 0 < np.sum(truth == k) < len(truth)]


def _judged(truth: NDArray[Any], count: int) -> list[int]:
    if count == 2:
        counts = np.bincount(truth.astype(int), minlength=2)
        return [0 if counts[0] < counts[1] else 1]
    return [int(k) for k in np.unique(truth)]


def _auc(positive: NDArray[Any], score: NDArray[Any]) -> float:
    """Returns the area under the curve by ranks, equal scores counting half (Mann-Whitney)."""
    from scipy.stats import rankdata

    ranks = rankdata(score)
    many = int(positive.sum())
    above = float(ranks[positive].sum()) - many * (many + 1) / 2
    return above / (many * (len(score) - many))


def _precision(positive: NDArray[Any], score: NDArray[Any]) -> float:
    order = np.argsort(-score, kind="stable")
    hit = positive[order]
    # Equal scores are found together: the precision at the last of them counts for all.
    last = np.append(np.flatnonzero(np.diff(score[order])), len(score) - 1)
    found = np.cumsum(hit)[last]
    precision = found / (last + 1)
    gained = np.diff(np.concatenate([[0], found]))
    return float(np.sum(precision * gained) / max(1, hit.sum()))


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


def negative_mape(truth: NDArray[Any], values: NDArray[Any]) -> float:
    """The mean error in shares of the truth; a truth of nearly 0 counts as a hundredth of the mean size."""
    size = np.maximum(np.abs(truth), max(1e-12, 0.01 * float(np.mean(np.abs(truth)))))
    return -float(np.mean(np.abs(truth - values) / size))


def quantile_loss(share: float) -> Metric:
    """The pinball loss for the quantile `share`, negated: 0.9 punishes answers that are too low nine times as much."""

    def metric(truth: NDArray[Any], values: NDArray[Any]) -> float:
        over = truth - values
        return -float(np.mean(np.maximum(share * over, (share - 1) * over)))

    return metric


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


METRICS: Mapping[Task, Mapping[str, Metric]] = MappingProxyType(
    {
        Task.CLASSIFY: MappingProxyType(
            {
                "accuracy": accuracy,
                "balanced_accuracy": balanced_accuracy,
                "roc_auc": roc_auc,
                "f1": f1,
                "average_precision": average_precision,
                "negative_log_loss": negative_log_loss,
            }
        ),
        Task.REGRESS: MappingProxyType(
            {
                "r2": r_squared,
                "negative_rmse": negative_rmse,
                "negative_mae": negative_mae,
                "negative_mape": negative_mape,
                "negative_quantile_0.1": quantile_loss(0.1),
                "negative_quantile_0.5": quantile_loss(0.5),
                "negative_quantile_0.9": quantile_loss(0.9),
            }
        ),
        Task.RECOVER: MappingProxyType({"ssim": ssim, "psnr": psnr}),
        Task.TRANSLATE: MappingProxyType({"r2": r_squared, "negative_rmse": negative_rmse}),
        Task.REBUILD: MappingProxyType({"bit_accuracy": bit_accuracy}),
    }
)
"""The first of each task is its default."""
BY_LABEL = frozenset({"accuracy", "balanced_accuracy", "f1"})
"""Metrics that look at the chosen class alone, and so at how it is chosen."""


def ceiling(metric: str) -> float:
    """Returns the best value that there can be in a metric."""
    if metric.startswith("negative_"):
        return 0.0
    return 100.0 if metric == "psnr" else 1.0


def interval(metric: str, quality: float, error: float, tested: float = 1.0) -> tuple[float, float]:
    """Returns where nine of ten tests on new examples score; never above what there can be.

    A test has a sampling error of its own: `tested` says how many examples it has for each that was validated, and
    `error`² · (1 + 1 / tested) is the variance of the difference between the two.
    """
    reach = SPREAD * error * (1 + 1 / tested) ** 0.5
    return quality - reach, max(quality, min(quality + reach, ceiling(metric)))


def metric_for(task: Task, name: str | None = None) -> tuple[str, Metric]:
    """The named metric of a task, its default, or costs that were written out.

    An error may be named without `negative_`: `mae`, `log_loss`.
    """
    known = METRICS[task]
    chosen = name or next(iter(known))
    costs = read_costs(chosen)
    if costs is not None and task is Task.CLASSIFY:
        return costs, partial(negative_cost, costs)
    if chosen not in known and f"negative_{chosen}" in known:
        chosen = f"negative_{chosen}"
    if chosen not in known:
        own = ", or costs such as cost(sick as healthy: 10)" if task is Task.CLASSIFY else ""
        raise InvalidInput(f"{task.value} has the metrics {', '.join(known)}{own}, not {chosen}")
    return chosen, known[chosen]
