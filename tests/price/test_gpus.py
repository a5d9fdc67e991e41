"""Profiles and grids with GPUs: what they speed up, what they cost, when they are worth it."""

from __future__ import annotations

import numpy as np
import pytest

from easel.errors import InvalidInput
from easel.price.book import FlatPrice, PriceBook, book_named
from easel.price.design import full_grid
from easel.price.grid import ANY_GPU, ON_CPU, paper_grid, product_grid
from easel.price.memory import MemoryModel
from easel.price.profiling import plan
from easel.price.provision import Aim, ChosenOffer, Infeasible, Wish, provision, quote
from easel.price.runs import ProfiledRun, RunOutcome
from easel.price.runtime import RuntimeModel, learn
from easel.price.template import parse

BOOK = PriceBook(
    name="gpus",
    vcpu=FlatPrice(per_hour=0.03),
    memory_gb=FlatPrice(per_hour=0.004),
    gpus={"h200": FlatPrice(per_hour=2.0)},
)
NO_MEMORY = MemoryModel(None, ())


def seconds(cell: dict[str, float]) -> float:
    """Two seconds to load on a processor, then work that a GPU does twenty times as fast."""
    return 2.0 + 10.0 * cell["epochs"] / min(cell["cpus"], 2.0) / (20.0 if cell["gpus"] else 1.0)


def profile() -> RuntimeModel:
    rng = np.random.default_rng(0)
    cells = full_grid({"epochs": (1.0, 3.0, 9.0)}, (0.5, 1.0, 2.0), (1024.0, 4096.0), (0.0, 1.0))
    noise = np.exp(0.02 * rng.standard_normal(len(cells)))
    return learn(
        [
            ProfiledRun(cell, RunOutcome.FINISHED, seconds(cell) * float(e))
            for cell, e in zip(cells, noise, strict=True)
        ]
    )


def test_a_grid_without_gpus_is_the_papers() -> None:
    assert (len(paper_grid()), paper_grid().device, paper_grid().gpu_counts.sum()) == (496, ON_CPU, 0)
    both = paper_grid((0.0, 1.0))
    assert len(both) == 992
    assert {(both.shape(i).device, both.shape(i).gpus) for i in (0, 991)} == {(ON_CPU, 0.0), (ANY_GPU, 1.0)}


def test_a_plan_tries_each_number_of_gpus_and_counts_what_they_cost() -> None:
    made = plan(
        parse("train --epochs {1,3,9}"), BOOK, 60.0, cpus=(1.0, 2.0), memories_mb=(1024.0,), gpus=(0.0, 1.0)
    )
    assert {run.shape.gpus for run in made.runs} == {0.0, 1.0}
    most = {
        run.shape.gpus: run.most_cost
        for run in made.runs
        if (run.shape.cpus, run.shape.memory_mb) == (1, 1024)
    }
    assert most[1.0] - most[0.0] == pytest.approx(2.0 / 60)


def test_the_model_learns_how_much_a_gpu_speeds_up_the_work_and_not_the_loading() -> None:
    cells = [{"epochs": 20.0, "cpus": 1.0, "memory_mb": 2048.0, "gpus": gpus} for gpus in (0.0, 1.0)]
    predicted = profile().predict(cells).seconds
    assert predicted == pytest.approx([seconds(cell) for cell in cells], rel=0.15)


def test_a_gpu_is_taken_when_only_it_is_fast_enough_and_left_when_it_is_not_worth_its_price() -> None:
    grid = product_grid((1.0, 2.0), (1024.0,), (0.0, 1.0))
    priced = quote(grid, {"epochs": 20.0}, profile(), NO_MEMORY, BOOK)
    hurried = provision(priced, Wish(Aim.CHEAPEST, max_seconds=30.0))
    patient = provision(priced, Wish(Aim.CHEAPEST, max_seconds=600.0))
    assert isinstance(hurried, ChosenOffer)
    assert isinstance(patient, ChosenOffer)
    assert (hurried.offer.shape.gpus, patient.offer.shape.gpus) == (1.0, 0.0)
    assert hurried.offer.per_hour == pytest.approx(
        float(BOOK.rate(hurried.offer.shape.cpus, 1024.0, "h200", 1.0))
    )
    assert isinstance(provision(priced, Wish(Aim.CHEAPEST, max_seconds=1.0)), Infeasible)


def test_a_book_without_gpus_has_them_for_nothing_and_one_with_its_own_kind_refuses_others() -> None:
    free = quote(
        product_grid((1.0,), (1024.0,), (0.0, 1.0)), {"epochs": 5.0}, profile(), NO_MEMORY, book_named("acai")
    )
    assert free.offer(0).per_hour == pytest.approx(free.offer(1).per_hour)
    with pytest.raises(InvalidInput, match="no price for GPU a100"):
        BOOK.rate(1.0, 1024.0, "a100", 1.0)


def test_more_gpus_than_were_tried_are_named_as_extrapolated() -> None:
    grid = product_grid((1.0,), (1024.0,), (1.0, 4.0))
    priced = quote(grid, {"epochs": 5.0}, profile(), NO_MEMORY, BOOK)
    assert [priced.offer(i).extrapolated for i in range(2)] == [(), ("gpus",)]


def test_a_model_with_gpus_is_the_same_after_being_stored() -> None:
    model = profile()
    again = RuntimeModel.from_json(model.to_json())
    row = [{"epochs": 7.0, "cpus": 2.0, "memory_mb": 1024.0, "gpus": 1.0}]
    assert again.predict(row).seconds == pytest.approx(model.predict(row).seconds)
    assert again.seen["gpus"] == pytest.approx((0.0, 1.0))
