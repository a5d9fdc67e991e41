from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from easel.errors import InvalidInput
from easel.price.book import PriceBook, Spot, book_named
from easel.price.design import full_grid
from easel.price.grid import Grid, ResourceShape, listed_grid, paper_grid, product_grid, span
from easel.price.memory import MemoryModel, TooLittle
from easel.price.picture import draw
from easel.price.provision import (
    Aim,
    ChosenOffer,
    Infeasible,
    Quote,
    Wish,
    at_least,
    front,
    provision,
    quote,
    side_by_side,
    worth_choosing,
)
from easel.price.runs import ProfiledRun, RunOutcome
from easel.price.runtime import RuntimeModel, learn, learn_log_linear

ANY_MEMORY = MemoryModel(None, ())
ACAI = book_named("acai")
BASELINE_S = 64.6 * 60
"""The paper's 20-epoch baseline on 2 vCPU and 7.5 GB."""


def papers_task(noise: float = 0.0) -> list[ProfiledRun]:
    """t = t₁·epochs/cpus, with t₁ such that the baseline comes out; profiled as in §5.1.1."""
    rng = np.random.default_rng(0)
    return [
        ProfiledRun(
            cell,
            RunOutcome.FINISHED,
            BASELINE_S / 20 * cell["epoch"] * 2 / cell["cpus"] * float(np.exp(noise * rng.standard_normal())),
        )
        for cell in full_grid({"epoch": (1.0, 2.0, 3.0)})
    ]


MODEL = learn_log_linear(papers_task())
UNSURE = learn(papers_task(noise=0.1))


def priced(
    model: RuntimeModel = MODEL,
    book: PriceBook = ACAI,
    confidence: float | None = None,
    grid: Grid | None = None,
    memory: MemoryModel = ANY_MEMORY,
    wait_s: float = 0.0,
) -> Quote:
    return quote(grid or paper_grid(), {"epoch": 20.0}, model, memory, book, confidence, wait_s)


def chosen(answer: ChosenOffer | Infeasible) -> ChosenOffer:
    assert isinstance(answer, ChosenOffer)
    return answer


def infeasible(answer: ChosenOffer | Infeasible) -> Infeasible:
    assert isinstance(answer, Infeasible)
    return answer


def test_the_papers_grid_has_496_cells() -> None:
    grid = paper_grid()
    assert len(grid) == 496
    assert grid.shape(0) == ResourceShape(0.5, 512.0)
    assert grid.shape(495) == ResourceShape(8.0, 8192.0)


@pytest.mark.parametrize("aim", list(Aim))
@pytest.mark.parametrize("limit", [0.03, 0.06, 0.0976, 0.2])
def test_the_choice_is_the_best_of_all_cells_that_keep_the_limits(aim: Aim, limit: float) -> None:
    """The paper's rule by brute force: filter, then optimise."""
    kept = []
    alpha, beta = np.exp(MODEL.fitted.theta[0]), dict(zip(MODEL.names, MODEL.fitted.theta[1:], strict=True))
    for c in span(0.5, 8, 0.5):
        for m in span(512, 8192, 256):
            seconds = alpha * 20 ** beta["epoch"] * c ** beta["cpus"] * m ** beta["memory_mb"]
            vcpu = 0.031611 * (2 / 3 + (2 / 3) * (c - 0.5) / 7.5)
            memory = 0.004237 * (2 / 3 + (2 / 3) * (m - 512) / 7680)
            cost = (vcpu * c + memory * m / 1024) * seconds / 3600
            if seconds <= BASELINE_S * (1 + 1e-12) and cost <= limit:
                pair = (round(float(cost), 6), round(float(seconds), 3))
                kept.append(pair if aim is Aim.CHEAPEST else pair[::-1])
    answer = provision(priced(), Wish(aim, max_seconds=BASELINE_S, max_cost=limit))
    if not kept:
        assert isinstance(answer, Infeasible)
        return
    offer = chosen(answer).offer
    got = (round(offer.cost, 6), round(offer.seconds, 3))
    assert min(kept) == (got if aim is Aim.CHEAPEST else got[::-1])


def test_at_equal_cost_the_papers_task_gets_more_processors_and_less_memory() -> None:
    baseline = float(ACAI.charge(ACAI.rate(2, 7680), BASELINE_S))
    offer = chosen(provision(priced(), Wish(Aim.FASTEST, max_cost=baseline))).offer
    assert offer.shape.cpus > 7
    assert offer.shape.memory_mb < 7680
    assert offer.cost <= baseline
    assert BASELINE_S / offer.seconds > 1.74


def test_at_equal_time_the_papers_task_costs_a_third_less() -> None:
    baseline = float(ACAI.charge(ACAI.rate(2, 7680), BASELINE_S))
    offer = chosen(provision(priced(), Wish(Aim.CHEAPEST, max_seconds=BASELINE_S * 1.001))).offer
    assert offer.shape.memory_mb == 512
    assert offer.seconds <= BASELINE_S * 1.001
    assert 1 - offer.cost / baseline > 0.35


def test_a_confidence_asks_for_more_than_the_median() -> None:
    limit = BASELINE_S
    likely = chosen(provision(priced(UNSURE), Wish(Aim.CHEAPEST, max_seconds=limit))).offer
    sure = chosen(
        provision(priced(UNSURE, confidence=0.95), Wish(Aim.CHEAPEST, max_seconds=limit, confidence=0.95))
    ).offer
    assert sure.shape.cpus > likely.shape.cpus
    assert sure.seconds < sure.sure_seconds <= limit
    assert sure.low_seconds < sure.seconds < sure.high_seconds


def test_waiting_in_the_queue_counts_against_the_deadline_but_is_not_paid() -> None:
    wish = Wish(Aim.CHEAPEST, max_seconds=BASELINE_S)
    at_once = chosen(provision(priced(), wish)).offer
    later = chosen(provision(priced(wait_s=1800), wish)).offer
    assert later.shape.cpus > at_once.shape.cpus
    assert later.sure_seconds == pytest.approx(later.seconds + 1800)
    assert later.cost == pytest.approx(float(ACAI.charge(later.per_hour, later.seconds)))


def test_too_little_memory_is_excluded() -> None:
    memory = MemoryModel(None, (TooLittle({"epoch": 10.0}, 2048.0),))
    offer = chosen(provision(priced(memory=memory), Wish(Aim.CHEAPEST))).offer
    assert offer.shape.memory_mb == 2304
    nothing = MemoryModel(None, (TooLittle({"epoch": 10.0}, 9000.0),))
    assert "too small for the memory" in infeasible(provision(priced(memory=nothing), Wish(Aim.CHEAPEST))).why


def test_an_impossible_deadline_is_answered_with_the_nearest_ways_out() -> None:
    answer = infeasible(provision(priced(), Wish(Aim.CHEAPEST, max_seconds=60)))
    assert "even the fastest size needs" in answer.why
    first = answer.nearest[0]
    assert first.offer.shape.cpus == 8
    assert first.remedy == f"allow {at_least(first.offer.sure_seconds)} s"
    again = Wish(Aim.CHEAPEST, max_seconds=first.offer.sure_seconds)
    assert isinstance(provision(priced(), again), ChosenOffer)


def test_contradictory_limits_name_both_sides() -> None:
    wish = Wish(Aim.CHEAPEST, max_seconds=1200, max_cost=0.06)
    answer = infeasible(provision(priced(), wish))
    assert answer.why == "sizes that are fast enough cost too much, and those cheap enough are too slow"
    assert 1 < len(answer.nearest) <= 3
    for way in answer.nearest:
        assert way.remedy
        relaxed = Wish(Aim.CHEAPEST, max(1200, way.offer.sure_seconds), max(0.06, way.offer.sure_cost))
        assert isinstance(provision(priced(), relaxed), ChosenOffer)


def test_a_budget_of_nothing_buys_only_what_is_free() -> None:
    assert isinstance(provision(priced(), Wish(Aim.FASTEST, max_cost=0.0)), Infeasible)
    free = chosen(provision(priced(book=book_named("free")), Wish(Aim.FASTEST, max_cost=0.0))).offer
    assert free.cost == 0.0
    assert free.shape.cpus == 8


def test_equal_times_go_to_the_cheaper_size() -> None:
    def same(cell: dict[str, float]) -> float:
        return 60.0 * cell["epoch"]

    flat = learn_log_linear(
        [ProfiledRun(cell, RunOutcome.FINISHED, same(cell)) for cell in full_grid({"epoch": (1.0, 2.0)})]
    )
    assert chosen(provision(priced(flat), Wish(Aim.FASTEST))).offer.shape == ResourceShape(0.5, 512.0)


def test_nobody_pays_much_more_for_a_sliver_of_time() -> None:
    """A noisy profile finds a little power for memory; with some indifference it is not paid for."""
    noisy = learn_log_linear(papers_task(noise=0.05))
    strict = chosen(provision(priced(noisy), Wish(Aim.FASTEST, max_cost=0.2))).offer
    relaxed = chosen(provision(priced(noisy), Wish(Aim.FASTEST, max_cost=0.2, indifference=0.05))).offer
    assert relaxed.cost < strict.cost
    assert relaxed.seconds <= strict.seconds * 1.05


def test_the_front_is_what_brute_force_calls_undominated() -> None:
    table = priced(UNSURE)
    points = list(zip(table.sure_seconds, table.sure_cost, strict=True))
    undominated = {
        (t, c)
        for t, c in points
        if not any((a <= t and b < c - 1e-12) or (a < t and b <= c - 1e-12) for a, b in points)
    }
    got = front(table)
    assert {(offer.sure_seconds, offer.sure_cost) for offer in got} <= undominated
    times = [offer.sure_seconds for offer in got]
    costs = [offer.sure_cost for offer in got]
    assert times == sorted(times)
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == min(table.sure_cost)
    assert times[0] == min(table.sure_seconds)


def test_of_sizes_that_are_about_equally_fast_only_the_cheapest_is_worth_choosing() -> None:
    (some, *_) = front(priced(UNSURE))
    whole = [replace(some, sure_seconds=t, sure_cost=9.0 - t) for t in (1.0, 1.02, 1.04, 1.2, 3.0, 3.1)]
    assert [offer.sure_seconds for offer in worth_choosing(whole)] == [1.04, 1.2, 3.1]
    assert worth_choosing([]) == []


def test_spot_is_cheaper_and_slower_and_short_of_guarantees() -> None:
    spot = book_named("n1-spot").model_copy(
        update={"terms": Spot(kind="spot", discount=0.7, interruptions_per_hour=0.3)}
    )
    firm, loose = priced(UNSURE, book_named("n1"), 0.95), priced(UNSURE, spot, 0.95)
    assert (loose.seconds > firm.seconds).all()
    assert (loose.sure_seconds > firm.sure_seconds).all()
    assert loose.cost.min() < firm.cost.min()


def test_spot_and_on_demand_are_one_choice() -> None:
    """Who has time takes the cheap devices, who must be sure of an hour the firm ones."""
    book = book_named("n1-mixed")
    quotes = [priced(UNSURE, book.under(label), 0.95) for label in ("on-demand", "spot")]
    table = side_by_side(quotes, ["on-demand", "spot"])
    assert len(table.seconds) == sum(len(one.seconds) for one in quotes)
    loose = chosen(provision(table, Wish(Aim.CHEAPEST, 1e9, confidence=0.95))).offer
    assert loose.shape.terms == "spot"
    tight = float(quotes[0].sure_seconds.min()) * 1.0001
    firm = chosen(provision(table, Wish(Aim.CHEAPEST, tight, confidence=0.95))).offer
    assert firm.shape.terms == "on-demand"
    assert firm.cost > loose.cost
    assert loose.high_seconds - loose.low_seconds > 0


def test_reserved_devices_stand_in_the_same_choice_by_their_price_and_their_wait() -> None:
    """Nobody takes one away, and by the hour it is cheaper: on demand only where it must be waited for."""
    book, labels = book_named("n1-mixed"), ["on-demand", "reserved", "spot"]
    quotes = [priced(UNSURE, book.under(label), 0.95) for label in labels]
    tight = Wish(Aim.CHEAPEST, float(quotes[0].sure_seconds.min()) * 1.0001, confidence=0.95)
    assert chosen(provision(side_by_side(quotes, labels), tight)).offer.shape.terms == "reserved"
    busy = [quotes[0], priced(UNSURE, book.under("reserved"), 0.95, wait_s=1e6), quotes[2]]
    assert chosen(provision(side_by_side(busy, labels), tight)).offer.shape.terms == "on-demand"


def test_the_interval_of_a_spot_run_holds_its_interruptions() -> None:
    """Even of a run whose time is known: it may be taken away."""
    firm = priced(book=book_named("n1-mixed"))
    spot = priced(book=book_named("n1-mixed").under("spot"))
    widths = [(one.high - one.low) / one.seconds for one in (firm, spot)]
    assert (widths[1] >= widths[0] - 1e-9).all()
    assert (widths[1] > widths[0] + 1e-3).any()


def test_machine_types_with_gpus_are_priced_with_them() -> None:
    grid = listed_grid([ResourceShape(4, 16384, "t4", 1), ResourceShape(8, 32768, "t4", 2)])
    table = priced(book=book_named("n1"), grid=grid)
    assert table.per_hour[0] == pytest.approx(4 * 0.031611 + 16 * 0.004237 + 0.35)
    assert table.offer(1).shape == ResourceShape(8, 32768, "t4", 2)
    with pytest.raises(InvalidInput, match="one device at a time"):
        listed_grid([ResourceShape(4, 16384, "t4", 1), ResourceShape(8, 32768)])


def test_extrapolation_is_said() -> None:
    offer = chosen(provision(priced(), Wish(Aim.FASTEST))).offer
    assert "cpus" in offer.extrapolated
    assert "epoch" in offer.extrapolated


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_seconds": -1.0},
        {"max_cost": float("nan")},
        {"confidence": 1.0},
        {"confidence": 0.1},
    ],
)
def test_senseless_wishes_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        Wish(Aim.CHEAPEST, **wrong)


def test_missing_and_absurd_arguments_are_refused() -> None:
    with pytest.raises(InvalidInput, match="also needs epoch"):
        quote(paper_grid(), {}, MODEL, ANY_MEMORY, ACAI)
    with pytest.raises(InvalidInput, match="must be positive"):
        quote(paper_grid(), {"epoch": 0.0}, MODEL, ANY_MEMORY, ACAI)


@pytest.mark.parametrize(
    "bounds", [(0.0, 1.0, 0.5), (2.0, 1.0, 0.5), (1.0, 2.0, 0.0), (1.0, float("inf"), 1.0)]
)
def test_ranges_are_checked(bounds: tuple[float, float, float]) -> None:
    with pytest.raises(InvalidInput):
        span(*bounds)
    with pytest.raises(InvalidInput):
        product_grid([], [512])


@pytest.mark.parametrize("limit", [0.0976, 0.0001])
def test_the_picture_is_drawn_whether_or_not_anything_is_allowed(limit: float) -> None:
    wish = Wish(Aim.FASTEST, max_cost=limit)
    assert draw(priced(), wish, provision(priced(), wish)).startswith(b"\x89PNG")
    assert b"<svg" in draw(priced(), wish, provision(priced(), wish), "svg")
