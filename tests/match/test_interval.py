"""What is shown before a test is what a test shows: simulated, where the truth is known, with the real choice."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from easel.match.ensemble import mix
from easel.match.judge import fold_spread, sampling_error, score
from easel.match.kinds import Task
from easel.match.luck import choice_luck, prefers_mixture
from easel.match.metrics import interval

Array = NDArray[np.float64]
FOLDS = 5


def ridge(x: Array, y: Array, strength: float) -> Array:
    wide = np.concatenate([x, np.ones((len(x), 1))], 1)
    found: Array = np.linalg.solve(wide.T @ wide + strength * np.eye(wide.shape[1]), wide.T @ y)
    return found


def answers(task: Task, weights: Array, x: Array) -> Array:
    raw: Array = x @ weights[:-1] + weights[-1]
    if task is Task.REGRESS:
        return raw[:, None]
    p = 1 / (1 + np.exp(-4 * raw))
    return np.stack([1 - p, p], 1)


def world(task: Task, rng: np.random.Generator) -> Callable[[int], tuple[Array, NDArray[np.int64] | Array]]:
    """Examples of one truth: three of eight numbers matter, and there is noise."""
    beta = np.concatenate([rng.normal(size=3), np.zeros(5)])

    def draw(count: int) -> tuple[Array, NDArray[np.int64] | Array]:
        x = rng.normal(size=(count, 8))
        y = x @ beta + rng.normal(size=count) * 1.2
        return x, ((y > 0).astype(np.int64) if task is Task.CLASSIFY else y[:, None])

    return draw


def shown_and_tested(
    task: Task, metric: str, n: int, tested: int, seed: int
) -> tuple[float, float, float, float]:
    """What an app shows (score, low, high) and what new examples say, after a choice among nine candidates."""
    rng = np.random.default_rng(seed)
    draw = world(task, rng)
    x, truth = draw(n)
    target = np.asarray(truth, float).ravel() - (0.5 if task is Task.CLASSIFY else 0.0)
    fold = rng.permutation(n) % FOLDS
    settings = [(rng.choice(8, size, replace=False), s) for size in (2, 4, 8) for s in (0.1, 10.0, 100.0)]
    members: dict[str, Array] = {}
    for number, (columns, strength) in enumerate(settings):
        mine = np.empty((n, 2 if task is Task.CLASSIFY else 1))
        for k in range(FOLDS):
            weights = ridge(x[fold != k][:, columns], target[fold != k], strength)
            mine[fold == k] = answers(task, weights, x[fold == k][:, columns])
        members[str(number)] = mine
    single = {name: score(task, metric, truth, p) for name, p in members.items()}
    best = max(single, key=lambda name: single[name])
    mixture = mix(task, metric, truth, members)
    mixed = score(task, metric, truth, mixture.predicted)
    luck = choice_luck(task, metric, truth, {**members, "ensemble": mixture.predicted}) or 0.0
    prefer = prefers_mixture(mixed, single[best], luck)
    chosen, shown = (mixture.predicted, mixed) if prefer else (members[best], single[best] - luck)
    weights_of = dict(mixture.weights) if prefer else {best: 1.0}
    error = sampling_error(task, metric, truth, chosen, seed=seed)
    low, high = interval(metric, shown, error, tested / n)
    new_x, new_truth = draw(tested)
    served = np.zeros((tested, chosen.shape[1]))
    for name, weight in weights_of.items():
        columns, strength = settings[int(name)]
        served += weight * answers(task, ridge(x[:, columns], target, strength), new_x[:, columns])
    return shown, low, high, score(task, metric, new_truth, served)


@pytest.mark.parametrize(
    ("task", "metric", "n", "tested"),
    [(Task.CLASSIFY, "accuracy", 150, 150), (Task.REGRESS, "r2", 200, 80)],
)
def test_nine_of_ten_tests_fall_into_the_interval_and_none_is_flattered(
    task: Task, metric: str, n: int, tested: int
) -> None:
    found = np.array([shown_and_tested(task, metric, n, tested, seed) for seed in range(80)])
    shown, low, high, test = found.T
    covered = np.mean((low <= test) & (test <= high))
    # 80 draws: two deviations are 6.7 points to either side of 90 %
    assert 0.83 <= covered <= 0.97
    gap = shown - test
    assert abs(gap.mean()) <= 0.005 + 2 * gap.std() / len(gap) ** 0.5
    assert gap.mean() <= 0.015


def test_folds_that_differ_more_than_chance_widen_the_error() -> None:
    assert fold_spread([0.80, 0.82, 0.78, 0.81, 0.79], 0.02) == 0.02
    groups = [0.95, 0.60, 0.90, 0.55, 0.92]
    assert fold_spread(groups, 0.02) == pytest.approx(np.std(groups, ddof=1) / 5**0.5)
    assert fold_spread([0.9, 0.1], 0.02) == 0.02, "two folds do not tell"


def test_a_smaller_test_is_less_sure() -> None:
    wide, narrow = (interval("accuracy", 0.8, 0.02, tested) for tested in (0.25, 4.0))
    assert wide[0] < narrow[0] < 0.8 < narrow[1] < wide[1]
    assert interval("accuracy", 0.99, 0.02)[1] == 1.0
