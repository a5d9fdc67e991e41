"""What is said about a larger pool, and when everybody's best model is reached."""

from __future__ import annotations

from easel.flow.pool_sizes import in_words
from easel.flow.replay_apart import times_to_best
from easel.flow.simulate import Past
from easel.run.pool_sizes import PoolSize, Waiting


def size(more: int, most_s: float, to_best_s: float | None, per_month: float) -> PoolSize:
    return PoolSize(more, Waiting(most_s / 2, most_s), to_best_s, per_month)


def test_the_recommendation_says_what_it_brings_and_costs() -> None:
    today, chosen = size(0, 4 * 3600.0, 100.0, 0.0), size(2, 40 * 60.0, 69.0, 1900.0)
    assert in_words(today, chosen, "GPU", "USD") == (
        "Two more GPUs: everybody's best model 31 % sooner, waiting 4 h → 40 min, 1,900 USD a month."
    )
    assert in_words(today, size(1, 60.0, None, 0.0), "device", "USD") == (
        "One more device: waiting 4 h → 60 s, at no price in the price book."
    )


def test_more_devices_reach_everybodys_best_model_sooner() -> None:
    past = [
        Past(f"app {i}", f"candidate {k}", 0.5 + 0.04 * ((i + k) % 8), 100.0 + 10 * k)
        for i in range(6)
        for k in range(8)
    ]
    one, two, four = times_to_best(past, [1, 2, 4])
    assert one is not None
    assert two is not None
    assert four is not None
    assert one > two > four
    assert times_to_best(past[:8], [1, 2]) == [None, None], "one app alone has none before it"
