"""The best of many coins looks lucky by about as much as it is; one clear winner does not."""

from __future__ import annotations

import numpy as np

from easel.match.kinds import Task
from easel.match.luck import choice_luck


def coins(count: int, examples: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=examples)
    said = {str(k): rng.random(examples) for k in range(count)}
    return truth, {name: np.stack([1 - p, p], 1) for name, p in said.items()}


def test_the_best_of_many_coins_is_lucky_by_what_it_scores_above_a_half() -> None:
    truth, members = coins(12, 150)
    best = max(float(np.mean(p.argmax(1) == truth)) for p in members.values())
    luck = choice_luck(Task.CLASSIFY, "accuracy", truth, members)
    assert luck is not None
    assert 0.3 * (best - 0.5) < luck < 2.5 * (best - 0.5)


def test_a_clear_winner_owes_little_to_luck_and_few_examples_say_nothing() -> None:
    truth, members = coins(5, 400)
    right = np.where(truth == 1, 0.9, 0.1)
    members["good"] = np.stack([1 - right, right], 1)
    assert choice_luck(Task.CLASSIFY, "accuracy", truth, members) == 0.0
    assert choice_luck(Task.CLASSIFY, "accuracy", truth[:10], {n: p[:10] for n, p in members.items()}) is None
