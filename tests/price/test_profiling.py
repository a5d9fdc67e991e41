from __future__ import annotations

import pytest

from easel.errors import InvalidInput
from easel.price.book import book_named
from easel.price.profiling import Design, FitNow, KeepWaiting, RunState, plan, progress
from easel.price.runs import ProfiledRun, RunOutcome
from easel.price.runtime import learn
from easel.price.template import parse

TEMPLATE = parse("python train.py --epoch {1,2,5} --batch-size {256,1024} --learning-rate 0.001")
ACAI = book_named("acai")


def test_the_full_design_is_the_papers_54_runs() -> None:
    made = plan(TEMPLATE, ACAI, 600, design=Design.FULL)
    assert len(made.runs) == made.grid_size == 54
    assert made.runs[0].command == "python train.py --epoch 1 --batch-size 256 --learning-rate 0.001"
    assert made.most_cost == pytest.approx(
        sum(float(ACAI.charge(ACAI.rate(r.shape.cpus, r.shape.memory_mb), 600)) for r in made.runs)
    )
    assert made.likely_cost is None


def test_the_default_design_takes_less_than_half() -> None:
    made = plan(TEMPLATE, ACAI, 600)
    assert len(made.runs) <= 27
    assert made.grid_size == 54


def test_a_budget_makes_the_design_smaller() -> None:
    free = plan(TEMPLATE, ACAI, 600)
    capped = plan(TEMPLATE, ACAI, 600, budget=free.most_cost / 2)
    assert capped.most_cost <= free.most_cost / 2
    assert capped.dropped == len(free.runs) - len(capped.runs) > 0


@pytest.mark.parametrize("design", list(Design))
def test_a_budget_too_small_for_anything_is_said(design: Design) -> None:
    with pytest.raises(InvalidInput, match="budget"):
        plan(TEMPLATE, ACAI, 600, design=design, budget=1e-9)


def test_an_earlier_profile_gives_the_likely_price() -> None:
    full = plan(TEMPLATE, ACAI, 600, design=Design.FULL)
    runs = [
        ProfiledRun(r.features, RunOutcome.FINISHED, 30 * r.features["epoch"] / r.features["cpus"])
        for r in full.runs
    ]
    again = plan(TEMPLATE, ACAI, 600, design=Design.FULL, earlier=learn(runs))
    truth = sum(
        float(ACAI.charge(ACAI.rate(run.features["cpus"], run.features["memory_mb"]), run.seconds))
        for run in runs
    )
    assert again.likely_cost == pytest.approx(truth, rel=0.05)
    assert again.likely_cost is not None
    assert again.likely_cost < again.most_cost


def test_inputs_of_several_sizes_are_one_more_feature() -> None:
    made = plan(TEMPLATE, ACAI, 600, inputs_mb=[10, 100], design=Design.FULL)
    assert made.grid_size == 108
    assert {run.features["input_mb"] for run in made.runs} == {10, 100}
    assert "input_mb" not in plan(TEMPLATE, ACAI, 600, inputs_mb=[10]).runs[0].features


@pytest.mark.parametrize("limit", [0.0, -1.0, float("inf"), float("nan")])
def test_every_run_needs_a_time_limit(limit: float) -> None:
    with pytest.raises(InvalidInput, match="time limit"):
        plan(TEMPLATE, ACAI, limit)


def test_absurdly_large_grids_are_refused() -> None:
    many = ",".join(str(n) for n in range(1, 400))
    with pytest.raises(InvalidInput, match="list fewer values"):
        plan(parse(f"t --n {{{many}}}"), ACAI, 600)


def states(done: int, going: int) -> dict[str, RunState]:
    ended = {f"done_{i}": RunState.DONE for i in range(done)}
    return ended | {f"going_{i}": RunState.GOING for i in range(going)}


def test_fitting_starts_when_95_of_100_are_done_and_the_rest_are_killed() -> None:
    assert progress(states(94, 6)) == KeepWaiting(1)
    assert progress(states(95, 5)) == FitNow(tuple(f"going_{i}" for i in range(5)))
    assert progress(states(100, 0)) == FitNow(())


def test_small_profiles_wait_for_every_run() -> None:
    assert progress(states(18, 1)) == KeepWaiting(1)
    assert progress(states(19, 1)) == FitNow(("going_0",))
