"""Provisioning over small tables of numbers that can be worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from easel.errors import InvalidInput
from easel.price.book import PriceBook, Spot, book_named
from easel.price.design import full_grid
from easel.price.grid import Grid, ResourceShape
from easel.price.memory import MemoryModel, TooLittle
from easel.price.provision import (
    Aim,
    ChosenOffer,
    Infeasible,
    Quote,
    Wish,
    at_least,
    best,
    front,
    provision,
    quote,
    side_by_side,
    worth_choosing,
)
from easel.price.runs import Array, Flags, ProfiledRun, RunOutcome, to_logarithms
from easel.price.runtime import Prediction, learn

RNG = np.random.default_rng(0)
MODEL = learn(
    [
        ProfiledRun(
            cell,
            RunOutcome.FINISHED,
            100.0 * cell["epoch"] / cell["cpus"] * float(np.exp(0.1 * RNG.standard_normal())),
        )
        for cell in full_grid({"epoch": (1.0, 2.0, 3.0)})
    ]
)
N1 = book_named("n1")
ANY_MEMORY = MemoryModel(None, ())
GRID = Grid(np.array([1.0, 2.0, 4.0]), np.array([1024.0, 1024.0, 2048.0]))
SPOT = N1.model_copy(
    update={"terms": Spot(kind="spot", discount=0.7, interruptions_per_hour=2.0, restart_s=60.0)}
)


def quoted(book: PriceBook = N1, confidence: float | None = None, wait: object = 0.0) -> Quote:
    return quote(GRID, {"epoch": 2.0}, MODEL, ANY_MEMORY, book, confidence, wait)  # type: ignore[arg-type]


def predicted() -> Prediction:
    rows = {"epoch": np.full(3, 2.0), "cpus": GRID.cpus, "memory_mb": GRID.memory_mb}
    return MODEL.predict_log(to_logarithms(MODEL.names, np.column_stack([rows[n] for n in MODEL.names])))


def table(seconds: list[float], cost: list[float], cpus: list[float] | None = None, **more: object) -> Quote:
    """Returns a quote in which time and cost, also those that limits bind on, are these numbers."""
    m, time, price = len(seconds), np.array(seconds), np.array(cost)
    grid = Grid(np.array(cpus or np.arange(1.0, m + 1)), np.full(m, 1024.0))
    given: dict[str, object] = {
        "grid": grid, "seconds": time, "low": time, "high": time, "cost": price, "sure_seconds": time,
        "sure_cost": price, "per_hour": price, "fits": np.ones(m, dtype=bool), "wait": np.zeros(m), **more,
    }  # fmt: skip
    return replace(quoted(), **given)  # type: ignore[arg-type]


def every(m: int) -> np.ndarray:
    return np.arange(m)


# --- the table itself


def test_a_quote_is_the_prediction_with_its_interval_and_the_price_of_its_time() -> None:
    made, likely = quoted(), predicted()
    low, high = likely.interval(0.9)
    for got, wanted in ((made.seconds, likely.seconds), (made.low, low), (made.high, high)):
        np.testing.assert_allclose(got, wanted)
    np.testing.assert_array_equal(made.sure_seconds, made.seconds)
    np.testing.assert_allclose(made.cost, N1.charge(made.per_hour, made.seconds))
    np.testing.assert_array_equal(made.sure_cost, made.cost)
    np.testing.assert_allclose(made.per_hour, N1.rate(GRID.cpus, GRID.memory_mb, None, np.zeros(3)))
    np.testing.assert_array_equal(made.wait, np.zeros(3))
    assert made.fits.all()


def test_with_a_confidence_limits_bind_on_its_quantile_of_time_and_of_cost() -> None:
    made = quoted(confidence=0.95)
    np.testing.assert_allclose(made.sure_seconds, predicted().quantile(0.95))
    np.testing.assert_allclose(made.sure_cost, N1.charge(made.per_hour, made.sure_seconds))
    np.testing.assert_allclose(made.cost, N1.charge(made.per_hour, made.seconds))


def test_an_offer_says_what_its_cell_says() -> None:
    made = quoted(confidence=0.8, wait=np.array([1.0, 2.0, 3.0]))
    offer = made.offer(1)
    assert offer.shape == ResourceShape(2.0, 1024.0)
    assert (offer.seconds, offer.low_seconds, offer.high_seconds) == (
        made.seconds[1],
        made.low[1],
        made.high[1],
    )
    assert (offer.cost, offer.per_hour, offer.wait_seconds) == (made.cost[1], made.per_hour[1], 2.0)
    assert (offer.sure_seconds, offer.sure_cost) == (made.sure_seconds[1], made.sure_cost[1])
    assert offer.extrapolated == MODEL.beyond({"epoch": 2.0, "cpus": 2.0, "memory_mb": 1024.0, "gpus": 0.0})


def test_memory_must_suffice_with_nine_in_ten_or_with_the_confidence_that_was_asked() -> None:
    asked = []

    class Watched(MemoryModel):
        def enough(self, arguments: Mapping[str, float], memory_mb: Array, confidence: float = 0.9) -> Flags:
            asked.append(confidence)
            return super().enough(arguments, memory_mb, confidence)

    for confidence in (None, 0.6, 0.97):
        quote(GRID, {"epoch": 2.0}, MODEL, Watched(None, ()), N1, confidence)
    assert asked == [0.9, 0.9, 0.97]
    small = quote(GRID, {"epoch": 2.0}, MODEL, MemoryModel(None, (TooLittle({"epoch": 1.0}, 1024.0),)), N1)
    assert small.fits.tolist() == [False, False, True]


def test_all_that_the_profile_needs_is_named_at_once() -> None:
    two = learn(
        [
            ProfiledRun({**c, "width": 1.0 + c["epoch"]}, RunOutcome.FINISHED, 1.0)
            for c in full_grid({"epoch": (1.0, 2.0)})
        ]
    )
    with pytest.raises(InvalidInput) as refused:
        quote(GRID, {}, two, ANY_MEMORY, N1)
    needed = ", ".join(name for name in two.names if name in ("epoch", "width"))
    assert str(refused.value) == f"the profile also needs {needed}: give a value for each"


# --- waiting


def test_a_known_wait_is_added_to_the_time_that_limits_bind_on_and_to_nothing_else() -> None:
    plain, waited = quoted(confidence=0.9), quoted(confidence=0.9, wait=np.array([10.0, 20.0, 30.0]))
    np.testing.assert_allclose(waited.sure_seconds - plain.sure_seconds, [10.0, 20.0, 30.0])
    np.testing.assert_array_equal(waited.wait, [10.0, 20.0, 30.0])
    np.testing.assert_array_equal(waited.sure_cost, plain.sure_cost)
    np.testing.assert_array_equal(waited.seconds, plain.seconds)


def test_of_drawn_waits_the_middle_is_said_and_counted_where_no_confidence_is_asked() -> None:
    draws = np.array([[5.0, 1.0, 3.0], [60.0, 40.0, 50.0], [0.0, 0.0, 9.0]])
    made = quoted(wait=draws)
    np.testing.assert_array_equal(made.wait, [3.0, 50.0, 0.0])
    np.testing.assert_allclose(made.sure_seconds, made.seconds + made.wait)


def test_a_certain_wait_that_is_drawn_moves_the_quantile_of_the_run_by_itself() -> None:
    """With as many draws of the run as of the wait, and with spot runs, of which there are more."""
    for book in (N1, SPOT):
        alone = quoted(book, 0.9)
        made = quoted(book, 0.9, np.full((3, 400), 100.0))
        np.testing.assert_allclose(made.sure_seconds, alone.sure_seconds + 100.0, rtol=0.02)
        few = quoted(book, 0.9, np.full((3, 7), 100.0))
        np.testing.assert_array_equal(few.wait, np.full(3, 100.0))
    np.testing.assert_allclose(few.sure_seconds, alone.sure_seconds + 100.0)


def test_waits_and_runs_that_are_long_by_turns_end_sooner_than_both_quantiles_together() -> None:
    alone = quoted(confidence=0.9)
    waits = np.tile(np.linspace(0.0, 200.0, 300), (3, 1))
    made = quoted(confidence=0.9, wait=waits)
    assert (made.sure_seconds < alone.sure_seconds + np.quantile(waits, 0.9, axis=1)).all()
    assert (made.sure_seconds > alone.sure_seconds).all()
    nothing = quoted(confidence=0.9, wait=np.zeros((3, 4)))
    np.testing.assert_array_equal(nothing.sure_seconds, alone.sure_seconds)
    single = quoted(confidence=0.5, wait=np.array([[1.0], [2.0], [3.0]]))
    np.testing.assert_allclose(single.sure_seconds, predicted().quantile(0.5) + np.arange(1.0, 4.0))


# --- spot


def test_a_spot_run_without_a_confidence_counts_its_expected_interruptions() -> None:
    made, alone = quoted(SPOT), quoted()
    terms = SPOT.terms
    assert isinstance(terms, Spot)
    np.testing.assert_allclose(made.seconds, terms.stretch(alone.seconds))
    np.testing.assert_array_equal(made.sure_seconds, made.seconds)
    np.testing.assert_allclose(made.cost, SPOT.charge(made.per_hour, terms.paid(alone.seconds)))
    np.testing.assert_allclose(made.sure_cost, made.cost)


def test_a_spot_run_with_a_confidence_pays_for_its_time_on_devices_and_not_for_its_restarts() -> None:
    made = quoted(SPOT, 0.95)
    paid = made.sure_cost / made.per_hour / float(SPOT.charge(np.ones(1), np.ones(1))[0])
    assert (paid < made.sure_seconds).all()
    assert (made.low < made.seconds).all()
    assert (made.seconds < made.high).all()
    assert (made.high < made.sure_seconds * 1.5).all()


# --- choosing


def test_what_is_exactly_at_a_limit_is_allowed_and_what_is_above_is_not() -> None:
    one = table([10.0, 20.0], [2.0, 1.0])
    assert one.allowed(Wish(Aim.CHEAPEST, max_seconds=10.0)).tolist() == [True, False]
    assert one.allowed(Wish(Aim.CHEAPEST, max_cost=1.0)).tolist() == [False, True]
    assert one.allowed(Wish(Aim.CHEAPEST, max_seconds=0.0)).tolist() == [False, False]
    none = table([0.0, 20.0], [0.0, 1.0], fits=np.array([True, False]))
    assert none.allowed(Wish(Aim.CHEAPEST, 0.0, 0.0)).tolist() == [True, False]
    assert none.fits.tolist() == [True, False], "asking changes nothing"


def test_times_within_a_millisecond_and_costs_within_a_millionth_are_equal() -> None:
    assert best(table([1.0004, 1.0], [1.0, 2.0]), every(2), Aim.FASTEST) == 0
    assert best(table([1.002, 1.0], [1.0, 2.0]), every(2), Aim.FASTEST) == 1
    assert best(table([1.0, 2.0], [1.0000004, 1.0]), every(2), Aim.CHEAPEST) == 0
    assert best(table([1.0, 2.0], [1.000002, 1.0]), every(2), Aim.CHEAPEST) == 1


def test_of_equals_the_one_with_fewer_processors_and_then_with_less_memory_is_taken() -> None:
    alike = table([1.0] * 3, [1.0] * 3, [4.0, 2.0, 2.0])
    grid = replace(alike.grid, memory_mb=np.array([512.0, 2048.0, 1024.0]))
    assert best(replace(alike, grid=grid), every(3), Aim.FASTEST) == 2
    assert best(alike, np.array([0, 1]), Aim.CHEAPEST) == 1, "an index of the table, not of the cells"


def test_indifference_counts_from_the_best() -> None:
    one = table([100.0, 105.0, 106.0], [3.0, 2.0, 1.0])
    assert best(one, every(3), Aim.FASTEST) == 0
    assert best(one, every(3), Aim.FASTEST, 0.05) == 1
    assert best(one, every(3), Aim.FASTEST, 0.06) == 2
    answer = provision(one, Wish(Aim.FASTEST, indifference=0.05))
    assert isinstance(answer, ChosenOffer)
    assert answer.offer.seconds == 105.0


def test_the_front_has_who_is_cheaper_than_all_that_are_faster() -> None:
    one = table([1.0, 2.0, 2.0, 3.0, 4.0, 5.0], [9.0, 8.0, 7.0, 7.0, 6.0, 1.0], fits=np.arange(6) != 5)
    assert [(o.seconds, o.cost) for o in front(one)] == [(1.0, 9.0), (2.0, 7.0), (4.0, 6.0)]


def test_about_equally_fast_reaches_as_far_as_it_says() -> None:
    (some, *_) = front(table([1.0], [1.0]))
    offers = [replace(some, sure_seconds=t) for t in (100.0, 105.0, 105.1)]
    assert [o.sure_seconds for o in worth_choosing(offers, 0.05)] == [105.0, 105.1]
    assert [o.sure_seconds for o in worth_choosing(offers, 0.0)] == [100.0, 105.0, 105.1]


# --- nothing is allowed


def refused(one: Quote, max_seconds: float | None = None, max_cost: float | None = None) -> Infeasible:
    answer = provision(one, Wish(Aim.CHEAPEST, max_seconds, max_cost))
    assert isinstance(answer, Infeasible)
    return answer


def test_each_limit_that_nothing_keeps_is_named_with_what_it_would_have_to_be() -> None:
    one = table([10.0, 20.0, 30.0], [6.0, 5.0, 4.0])
    late = refused(one, 5.0)
    assert late.why == "even the fastest size needs 10 s of the 5 s allowed"
    assert [(way.offer.seconds, way.remedy) for way in late.nearest] == [(10.0, "allow 10 s")]
    dear = refused(one, None, 1.0)
    assert dear.why == "even the cheapest size costs 4 of the 1 allowed"
    assert [(way.offer.seconds, way.remedy) for way in dear.nearest] == [(30.0, "allow 4")]
    both = refused(one, 5.0, 1.0)
    assert both.why == (
        "even the fastest size needs 10 s of the 5 s allowed; even the cheapest size costs 4 of the 1 allowed"
    )


def test_the_smallest_concession_comes_first_then_that_of_time_and_that_of_money() -> None:
    one = table([10.0, 16.0, 40.0], [9.0, 3.2, 2.0])
    answer = refused(one, 12.0, 2.5)
    assert answer.why == "sizes that are fast enough cost too much, and those cheap enough are too slow"
    assert [(way.offer.seconds, way.remedy) for way in answer.nearest] == [
        (16.0, "allow 16 s and allow 3.2"),
        (10.0, "allow 9"),
        (40.0, "allow 40 s"),
    ]


def test_of_ways_that_are_as_late_the_cheaper_is_named_and_of_those_as_dear_the_faster() -> None:
    on_time = table([10.0, 11.0, 99.0], [9.0, 8.0, 1.0])
    assert {way.offer.seconds for way in refused(on_time, 12.0, 2.0).nearest} == {11.0, 99.0}
    cheap = table([10.0, 50.0, 40.0], [90.0, 1.0, 2.0])
    assert {way.offer.seconds for way in refused(cheap, 12.0, 2.0).nearest} == {10.0, 40.0}


def test_a_limit_of_nothing_is_broken_by_the_value_itself() -> None:
    one = table([10.0, 20.0], [0.3, 0.2])
    answer = refused(one, None, 0.0)
    assert answer.why == "even the cheapest size costs 0.2 of the 0 allowed"
    assert [way.remedy for way in answer.nearest] == ["allow 0.2"]
    assert refused(table([1.0], [1.0], fits=np.array([False]))).nearest == ()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (-1.0, "0"), (0.0, "0"), (0.1, "0.1"), (0.012341, "0.0124"), (12.3, "12.3"), (12.31, "12.4"),
        (999.0, "999"), (999.5, "1000"), (1000.0, "1000"), (1234.2, "1235"), (1e6, "1000000"),
    ],
)  # fmt: skip
def test_what_must_be_allowed_is_rounded_up_to_three_digits(value: float, said: str) -> None:
    assert at_least(value) == said


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"max_seconds": -1.0}, "a maximum time of -1.0: give a number that is not negative"),
        ({"max_cost": -2.0}, "a maximum cost of -2.0: give a number that is not negative"),
        ({"confidence": 0.49}, "a confidence of 0.49: give at least 0.5 and less than 1, such as 0.95"),
        ({"confidence": 1.0}, "a confidence of 1.0: give at least 0.5 and less than 1, such as 0.95"),
    ],
)
def test_a_senseless_wish_is_answered_with_one_that_makes_sense(wrong: dict[str, float], said: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        Wish(Aim.FASTEST, **wrong)
    assert str(refusal.value) == said
    assert Wish(Aim.FASTEST, 0.0, 0.0, 0.5).confidence == 0.5


# --- terms beside each other


def test_quotes_on_other_terms_stand_one_after_the_other_cell_by_cell() -> None:
    one, two = table([1.0, 2.0], [3.0, 4.0]), table([5.0], [6.0], low=np.array([7.0]), high=np.array([8.0]))
    joined = side_by_side([one, two], ["firm", "spot"])
    assert joined.grid.terms == ("firm", "firm", "spot")
    assert joined.grid.cpus.tolist() == [1.0, 2.0, 1.0]
    assert joined.grid.memory_mb.tolist() == [1024.0] * 3
    assert joined.grid.gpus is None
    assert joined.grid.device == one.grid.device
    for name in ("seconds", "low", "high", "cost", "sure_seconds", "sure_cost", "per_hour", "fits", "wait"):
        both = [*getattr(one, name), *getattr(two, name)]
        assert getattr(joined, name).tolist() == both, name
    with pytest.raises(ValueError, match="zip"):
        side_by_side([one, two], ["firm"])


def test_one_quote_stays_as_it_is_unless_its_terms_have_a_name() -> None:
    one = table([1.0], [2.0])
    assert side_by_side([one], [""]) is one
    assert side_by_side([one], ["reserved"]).offer(0).shape.terms == "reserved"
    unnamed = side_by_side([one, one], ["", "spot"])
    assert unnamed.grid.terms == ("", "spot")


def test_gpus_of_some_are_zeros_of_the_others() -> None:
    plain = table([1.0], [2.0])
    strong = replace(plain, grid=replace(plain.grid, device="t4", gpus=np.array([2.0])))
    joined = side_by_side([strong, plain], ["a", "b"])
    assert joined.grid.gpus is not None
    assert joined.grid.gpus.tolist() == [2.0, 0.0]
    assert joined.grid.device == "t4"
