"""Slices of apps with many examples are short at first, whatever the family, and cost what its law says."""

from __future__ import annotations

import numpy as np
import pytest

from easel.declare.friendly import read_program
from easel.flow.apps.beliefs import Costs, with_whole_seconds
from easel.flow.apps.curve_book import LEAST_SLICE_S, CurveBook
from easel.flow.apps.learned_book import LearnedBook
from easel.flow.apps.rungs import RUNGS, cost_until, rungs_for
from easel.ids import AppId
from easel.match.propose import propose_candidates
from easel.match.summary import DataSummary
from easel.records.decision import StartTrial
from easel.records.tenant import PastTrial
from easel.schedule.policies.default import Easel
from easel.schedule.state import PoolDevice, PoolState, Tenant
from easel.tenancy.newcomers import FIRST_S, NewcomersFirst

PICTURES = "{input: {[Tensor[28, 28, 1]], []}, output: {[Tensor[10]], []}}"
TABLE = "input: {a: number, b: number, c: [red, green]}\noutput: [yes, no]"
NUMBER = "input: {a: number, b: number}\noutput: number"
SERIES = "{input: {[Tensor[8]], [next]}, output: {[Tensor[3]], []}}"
TEXT = "input: text\noutput: [good, bad]"


def tenant(program: str, summary: DataSummary) -> Tenant:
    candidates = propose_candidates(read_program(program), summary)
    costs = Costs(())
    book = CurveBook((), LearnedBook(()), costs)
    return Tenant(
        "app",
        tuple(one.name for one in candidates),
        book.belief("app", candidates, summary),
        costs.seconds(candidates),
        ceiling=1.0,
        least_slice=LEAST_SLICE_S,
    )


def first_slice(one: Tenant) -> StartTrial:
    chosen = NewcomersFirst(Easel()).decide(PoolState({"app": one}, PoolDevice("core")))
    assert isinstance(chosen, StartTrial)
    return chosen


@pytest.mark.parametrize(
    ("program", "summary"),
    [
        (PICTURES, DataSummary(60_000, 784, side=28, classes=10)),
        (TABLE, DataSummary(1_000_000, 3, classes=2)),
        (NUMBER, DataSummary(1_000_000, 2)),
        (SERIES, DataSummary(100_000, 8 * 100, steps=100, classes=3)),
        (TEXT, DataSummary(200_000, 100, steps=100, classes=2)),
    ],
)
def test_the_first_slice_of_many_examples_is_short(program: str, summary: DataSummary) -> None:
    chosen = first_slice(tenant(program, summary))
    assert chosen.slice is not None
    assert chosen.slice.share < 1.0
    assert chosen.reasons.cost <= FIRST_S


@pytest.mark.parametrize("examples", [0, 1_000, 47_000])
def test_few_examples_need_no_smaller_slices(examples: int) -> None:
    assert rungs_for(examples) == RUNGS


def test_first_rungs_hold_some_thousand_examples_however_many_there_are() -> None:
    for examples in (60_000, 1_000_000, 30_000_000):
        found = rungs_for(examples)
        assert 1_000 <= found[0] * examples <= 4_000
        assert found[-4:] == RUNGS
        assert list(found) == sorted(found)


def test_support_vectors_of_a_share_cost_by_its_square_and_checkpoints_in_proportion() -> None:
    assert cost_until(1 / 12, "svm", 20_000) == pytest.approx(1 / 144)
    assert cost_until(1 / 4, "svm", 20_000) == pytest.approx(1 / 16 + 1 / 144), "every slice begins anew"
    assert cost_until(0.5, "lightgbm", 20_000) == cost_until(0.5, "of another release") == pytest.approx(0.55)


def test_a_small_slice_of_a_steep_family_does_not_foretell_a_whole_of_hours() -> None:
    """Mostly the time to start; as a share of a whole trial it would say 36 times the guess."""
    short = PastTrial(0, AppId("a"), "accuracy", "svm(C=3)", "svm", 0.8, 2.4, 0.9, 0.6, None, 12_000, 1 / 12)
    [(_, seconds)] = with_whole_seconds([short])
    assert 2.4 < seconds < 3 * 2.4


def test_what_slices_of_others_cost_moves_the_forecast_and_not_its_shape() -> None:
    """Three apps found support vectors twice as dear as guessed at every rung: a fourth expects just that."""
    summary = DataSummary(20_000, 784, side=28, classes=10)
    candidates = propose_candidates(read_program(PICTURES), summary)
    some = [one for one in candidates if one.family in ("svm", "logistic_regression")]
    past = []
    for app in ("a", "b", "c", "d", "e"):
        for one in some:
            for before, share in ((0.0, 1 / 12), (1 / 12, 1 / 4)):
                until = cost_until(share, one.family, 20_000)
                earlier = cost_until(before, one.family, 20_000) if before else 0.0
                seconds = 2.0 * one.cost_s * (until - earlier)
                past.append(
                    PastTrial(
                        0,
                        AppId(app),
                        "accuracy",
                        one.name,
                        one.family,
                        one.promise,
                        one.cost_s,
                        0.8,
                        seconds,
                        None,
                        20_000,
                        share,
                    )
                )
    costs = Costs(past)
    fresh, taught = (
        CurveBook(seen, LearnedBook(()), book).belief("z", candidates, summary)
        for seen, book in (((), Costs(())), (past, costs))
    )
    index = [k for k, one in enumerate(candidates) if one.family == "svm"]
    times = taught.costs()[index] / fresh.costs()[index]  # type: ignore[attr-defined]
    assert np.all((times > 1.4) & (times < 2.8))
