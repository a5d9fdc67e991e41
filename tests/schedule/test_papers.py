"""The quick form of the papers' experiments: the orderings that the papers claim and the data supports."""

from __future__ import annotations

import pytest
from benchmarks.papers import run_all, worlds

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not worlds.available(), reason=f"no evaluation data at {worlds.DATA}: set EASEL_DATA to run these"
    ),
]


@pytest.fixture(scope="module")
def figures() -> dict[str, float]:
    return run_all.run(quick=True)


def test_hybrid_and_mm_gp_ei_leave_the_old_heuristics_behind(figures: dict[str, float]) -> None:
    at = "sooner than most-cited at 0.02 on DEEPLEARNING"
    assert figures[f"end to end: hybrid {at}"] > 9.8
    assert figures[f"end to end: mm-gp-ei-prior {at}"] > 9.8
    assert figures[f"end to end: easel {at}"] > 9.8


def test_knowing_costs_helps(figures: dict[str, float]) -> None:
    where = "cost-awareness (DEEPLEARNING)"
    assert figures[f"lesions: hybrid; {where}"] < 0.5 * figures[f"lesions: hybrid-oblivious; {where}"]


def test_more_history_helps_with_diminishing_returns(figures: dict[str, float]) -> None:
    where = "size of the history (DEEPLEARNING)"
    tenth, half, full = (figures[f"lesions: hybrid, {p} of history; {where}"] for p in ("10%", "50%", "100%"))
    assert half < tenth
    assert abs(half - full) < 0.2 * (tenth - half)


def test_stronger_correlation_makes_selection_easier(figures: dict[str, float]) -> None:
    assert figures["lesions: hybrid; SYN(0.5,0.1)"] < 0.3 * figures["lesions: hybrid; SYN(0.01,0.1)"]


def test_without_costs_choosing_the_tenant_beats_chance(figures: dict[str, float]) -> None:
    for name in ("DEEPLEARNING", "AZURE-like"):
        hybrid = figures[f"cost-oblivious: hybrid-oblivious area on {name}"]
        assert hybrid < figures[f"cost-oblivious: random-oblivious area on {name}"]


def test_more_devices_speed_things_up(figures: dict[str, float]) -> None:
    for policy in ("mm-gp-ei", "easel"):
        times = [figures[f"devices: {policy} speed-up with {d} devices"] for d in (1, 2, 4, 8)]
        assert times == sorted(times)
    assert figures["devices: easel speed-up with 8 devices"] > 6.0


def test_the_default_is_closer_to_hindsight_than_any_policy_of_the_papers(
    figures: dict[str, float],
) -> None:
    assert figures["cost-aware: excess, geometric mean"] < 0.7
