"""Replays of a project's history, in a process of their own."""

from __future__ import annotations

import pytest

from easel.errors import InvalidInput
from easel.flow.simulate import MOST_RUNS, Past, simulate
from easel.schedule.replay import ReplaySettings

HISTORY = [
    Past(f"app{i}", f"model{k}", 0.5 + 0.05 * ((i * 7 + k * 3) % 9), 10.0 + k)
    for i in range(6)
    for k in range(5)
]


def test_each_policy_and_pool_size_has_a_falling_curve_above_the_bound() -> None:
    found = simulate(HISTORY, ReplaySettings(("easel", "fcfs"), (1, 2), serve=3, share=0.5, repetitions=2))
    assert (found.tenants, found.candidates, found.trials) == (6, 5, 30)
    assert [(run.policy, run.devices) for run in found.runs] == [
        (policy, count) for policy in ("easel", "fcfs", "greedy with hindsight", "bound") for count in (1, 2)
    ]
    for run in found.runs:
        assert run.loss == sorted(run.loss, reverse=True)
        assert len(run.time) == len(run.loss)
        assert run.time[-1] <= found.horizon * 1.0001
    best = {run.devices: run.mean_loss for run in found.runs if run.policy == "bound"}
    assert best[2] <= best[1]
    assert all(best[run.devices] <= run.mean_loss for run in found.runs)


def test_a_failed_trial_is_no_quality() -> None:
    failed = [*HISTORY, Past("app0", "broken", None, 5.0)]
    assert simulate(failed, ReplaySettings(("fcfs",), (1,), serve=3, repetitions=1)).candidates == 6


@pytest.mark.parametrize(
    ("past", "plan", "words"),
    [
        (HISTORY[:5], ReplaySettings(("easel",)), "at least two apps"),
        (HISTORY, ReplaySettings(("nobody",)), "no policy nobody; there are easel"),
        (HISTORY, ReplaySettings(("easel",), repetitions=MOST_RUNS + 1), "leave some out"),
    ],
)
def test_what_cannot_be_replayed_is_refused_in_words(
    past: list[Past], plan: ReplaySettings, words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        simulate(past, plan)


def test_what_takes_too_long_is_ended_and_says_what_to_leave_out() -> None:
    with pytest.raises(InvalidInput, match="ask for fewer repetitions"):
        simulate(HISTORY, ReplaySettings(("easel",), repetitions=1), limit_s=0.001)
