"""What validated answers tell: scores in every metric with their sampling error, a baseline, calibration, decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from easel.match.costs import cheapest, is_cost, negative_cost
from easel.match.kinds import Task
from easel.match.metrics import METRICS

RESAMPLED = 100
COVER = 0.9
"""The share of truths that an answered interval should cover."""


@dataclass(frozen=True)
class Calibration:
    """How raw answers become honest ones, learned from validated answers.

    `temperature` flattens (> 1) or sharpens (< 1) class probabilities. `weights[metric]` multiply them before a class
    is chosen, so that rare classes are found where the metric asks for it. `margins[k]` is the half width of an
    interval around the k-th answered number that covers nine truths of ten (split conformal).
    """

    temperature: float = 1.0
    weights: Mapping[str, tuple[float, ...]] | None = None
    margins: tuple[float, ...] = ()

    def apply(self, probabilities: NDArray[Any]) -> NDArray[Any]:
        if self.temperature == 1.0:
            return probabilities
        return tempered(probabilities, self.temperature)

    def chosen(self, probabilities: NDArray[Any], metric: str) -> NDArray[Any]:
        """`(n, D)` whose largest entry is the class to answer with; costs name classes by their numbers."""
        if is_cost(metric):
            return cheapest(metric, probabilities)
        weights = (self.weights or {}).get(metric)
        return probabilities if weights is None else probabilities * np.asarray(weights)


NONE = Calibration()
Chosen = Mapping[str, NDArray[Any]]
"""By metric: answers whose largest entry is the class that is chosen for it."""
UNCHOSEN: Chosen = MappingProxyType({})


def tempered(probabilities: NDArray[Any], temperature: float) -> NDArray[Any]:
    """softmax(log p / T)"""
    logs = np.log(np.clip(probabilities, 1e-12, 1.0)) / temperature
    # A class that was never seen keeps its 0.
    raised = np.where(probabilities > 0, np.exp(logs - logs.max(1, keepdims=True)), 0.0)
    whole: NDArray[Any] = raised / np.maximum(raised.sum(1, keepdims=True), 1e-300)
    return whole


def calibrate(
    task: Task, truth: NDArray[Any], predicted: NDArray[Any], examples: int | None = None
) -> Calibration:
    """Learns a calibration from validated answers to so many examples; fewer than ten teach nothing."""
    count = len(truth) if examples is None else examples
    if count < FEWEST:
        return NONE
    if task is Task.REGRESS:
        return Calibration(margins=conformal_margins(truth, predicted, count))
    if task is not Task.CLASSIFY:
        return NONE
    temperature = fit_temperature(truth, predicted)
    return Calibration(temperature, label_weights(truth, tempered(predicted, temperature)))


def fit_temperature(truth: NDArray[Any], probabilities: NDArray[Any]) -> float:
    """The temperature of least log loss, drawn towards 1 as if by five more examples."""
    from scipy.optimize import minimize_scalar

    rows = np.arange(len(truth))

    def loss(log_temperature: float) -> float:
        chosen = tempered(probabilities, float(np.exp(log_temperature)))[rows, truth]
        return -float(np.mean(np.log(np.clip(chosen, 1e-12, 1.0)))) + 5 / len(truth) * log_temperature**2

    found = minimize_scalar(loss, bounds=(np.log(0.05), np.log(20.0)), method="bounded")
    return float(np.exp(found.x))


def label_weights(truth: NDArray[Any], probabilities: NDArray[Any]) -> dict[str, tuple[float, ...]]:
    """Returns weights by label: 1 / prior for balanced accuracy; for F₁ of two classes the best threshold."""
    count = probabilities.shape[1]
    prior = np.maximum(np.bincount(truth, minlength=count), 1) / len(truth)
    even = tuple((float(prior.max()) / prior).tolist())
    found = {"balanced_accuracy": even}
    if count == 2:
        rare = int(prior.argmin())
        found["f1"] = _best_threshold(truth == rare, probabilities[:, rare], rare)
    else:
        found["f1"] = tuple((float(prior.max()) / prior) ** 0.5)
    return found


PARTS = 5
FEWEST = 10
"""Fewer validated examples teach no calibration."""


def chosen_apart(
    truth: NDArray[Any], probabilities: NDArray[Any], by_example: NDArray[np.intp] | None = None
) -> dict[str, NDArray[Any]]:
    """`(n, D)` answers for each metric that looks at the chosen class, decided by thresholds that were fitted without
    their own fifth of the examples: by them the metric may be scored, as by those of the calibration it may not.

    `by_example` `(n, turns)`: the rows of each example, where it was answered more than once.
    """
    of = np.arange(len(truth))[:, None] if by_example is None else by_example
    if len(of) < FEWEST:
        return {}
    found: dict[str, NDArray[Any]] = {}
    for k in range(PARTS):
        mine, rest = of[k::PARTS].ravel(), np.delete(of, np.s_[k::PARTS], axis=0).ravel()
        for name, weights in label_weights(truth[rest], probabilities[rest]).items():
            found.setdefault(name, np.array(probabilities, dtype=float))[mine] *= np.asarray(weights)
    return found


def _best_threshold(positive: NDArray[Any], score: NDArray[Any], rare: int) -> tuple[float, ...]:
    order = np.argsort(-score, kind="stable")
    found = np.cumsum(positive[order])
    f = 2 * found / (np.arange(1, len(score) + 1) + positive.sum())
    # The middle of the neighbours: less moved by a single example.
    best = int(np.convolve(f, np.ones(3) / 3, mode="same").argmax()) if len(f) > 10 else int(f.argmax())
    after = score[order[min(best + 1, len(score) - 1)]]
    threshold = float(np.clip((score[order[best]] + after) / 2, 1e-3, 1 - 1e-3))
    weight = (1 - threshold) / threshold
    return (weight, 1.0) if rare == 0 else (1.0, weight)


def conformal_margins(
    truth: NDArray[Any], values: NDArray[Any], examples: int | None = None
) -> tuple[float, ...]:
    """Returns for each output the quantile of absolute errors with the finite-sample correction (n + 1) · 0.9 / n,
    where n counts `examples`, of which each may have been answered several times.
    """
    errors = np.abs(np.asarray(truth, float) - np.asarray(values, float)).reshape(len(truth), -1)
    count = len(errors) if examples is None else examples
    share = min(1.0, np.ceil((count + 1) * COVER) / count)
    return tuple(np.quantile(errors, share, axis=0, method="higher").tolist())


def all_scores(
    task: Task, truth: NDArray[Any], predicted: NDArray[Any], chosen: Chosen = UNCHOSEN
) -> dict[str, float]:
    """Returns the score in every metric of the task; one that has no value for these answers is left out."""
    found = {name: score(task, name, truth, predicted, chosen) for name in METRICS[task]}
    return {name: value for name, value in found.items() if np.isfinite(value)}


def score(
    task: Task, name: str, truth: NDArray[Any], predicted: NDArray[Any], chosen: Chosen = UNCHOSEN
) -> float:
    """Returns the score in one metric; of the answers as they were `chosen` for it, if they were. Costs are by the
    classes' numbers.
    """
    if is_cost(name):
        return negative_cost(name, truth, predicted)
    return METRICS[task][name](truth, chosen.get(name, predicted))


def rows_of(chosen: Chosen, rows: NDArray[Any]) -> Chosen:
    return {name: answers[rows] for name, answers in chosen.items()}


def sampling_error(
    task: Task,
    name: str,
    truth: NDArray[Any],
    predicted: NDArray[Any],
    chosen: Chosen = UNCHOSEN,
    seed: int = 0,
    by_example: NDArray[np.intp] | None = None,
) -> float:
    """The deviation of the score over resamples of the validated examples (bootstrap).

    `by_example` `(n, turns)`: the rows of each example, where it was answered more than once.
    """
    of = np.arange(len(truth))[:, None] if by_example is None else by_example
    if len(of) < 2 or task in (Task.RECOVER, Task.REBUILD):
        return 0.0
    rng = np.random.default_rng(seed)
    scores = []
    for _ in range(RESAMPLED):
        rows = of[rng.integers(len(of), size=len(of))].ravel()
        scores.append(score(task, name, truth[rows], predicted[rows], rows_of(chosen, rows)))
    finite = [value for value in scores if np.isfinite(value)]
    if task is Task.CLASSIFY and finite and min(finite) == max(finite) == 1.0:
        return flawless_error(len(of))
    return float(np.std(finite)) if finite else 0.0


def flawless_error(examples: int) -> float:
    """Returns the deviation of a share of which all `examples` were right, where resampling sees none: that of
    Beta(n + ½, ½), the share's posterior from Jeffreys' prior.
    """
    right, wrong = examples + 0.5, 0.5
    return float((right * wrong / ((right + wrong) ** 2 * (right + wrong + 1))) ** 0.5)


def fold_spread(of_folds: Sequence[float], error: float) -> float:
    """Returns the deviation of a score whose folds may differ by more than sampling: by group, by time, by shift.

    `error` is the deviation by sampling. Five folds say little about a spread: it counts where it is larger than
    chance makes it once in twenty times (χ² with k − 1 degrees of freedom).
    """
    known = np.array([value for value in of_folds if np.isfinite(value)])
    if len(known) < 3 or error <= 0:
        return error
    from scipy.stats import chi2

    variance = float(known.var(ddof=1)) / len(known)
    chance = chi2.ppf(0.95, len(known) - 1) / (len(known) - 1)
    return variance**0.5 if variance > chance * error**2 else error


def baseline(task: Task, name: str, truth: NDArray[Any], classes: int = 0) -> float | None:
    """The score of always giving the same answer: the usual class with the classes' shares, the mean, the median."""
    if task is Task.CLASSIFY:
        shares = np.bincount(truth, minlength=max(classes, int(truth.max()) + 1)) / len(truth)
        return score(task, name, truth, np.tile(shares, (len(truth), 1)))
    if task is not Task.REGRESS:
        return None
    middle = {"negative_mae": 0.5, "negative_mape": 0.5, "negative_quantile_0.5": 0.5}
    share = middle.get(name, 0.1 if name.endswith("0.1") else 0.9 if name.endswith("0.9") else None)
    values = np.asarray(truth, float).reshape(len(truth), -1)
    constant = values.mean(0) if share is None else np.quantile(values, share, axis=0)
    return METRICS[task][name](values, np.broadcast_to(constant, values.shape))


def losses_by_example(
    task: Task, truth: NDArray[Any], predicted: NDArray[Any], by_example: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Returns how surprising each validated example is: `(n,)` log loss or squared error, mean over its turns."""
    if task is Task.CLASSIFY:
        chosen = predicted[np.arange(len(truth)), truth]
        lost = -np.log(np.clip(chosen, 1e-15, 1.0)).astype(np.float64)
    else:
        squared = (np.asarray(truth, float) - np.asarray(predicted, float)) ** 2
        lost = squared.reshape(len(truth), -1).mean(1)
    mean: NDArray[np.float64] = lost[by_example].mean(1)
    return mean
