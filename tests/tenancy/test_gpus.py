"""Trials of networks on GPUs: who goes there, what they ask for, what the pool learns of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from easel.declare.job import Trial
from easel.declare.resources import Resources, Room
from easel.flow.apps import curve_book
from easel.flow.apps.beliefs import Costs, gpu_guess
from easel.flow.apps.declare import declare_app
from easel.flow.apps.feed import feed
from easel.flow.apps.on_gpus import OnGpus
from easel.flow.prices import book_now
from easel.flow.terms import set_app_terms
from easel.ids import AppId
from easel.match.candidate import Candidate
from easel.match.packing import packing_of
from easel.match.registry import is_network
from easel.match.summary import DataSummary
from easel.price.book import FlatPrice, PriceBook
from easel.records.job import Job
from easel.records.tenant import PastTrial
from easel.store import app_trials, devices, trial_history
from easel.tenancy.places import BESIDE, Taken, gpu_kind, idle
from easel.testing.engine import EngineUnderTest
from easel.testing.pool import PoolUnderTest

H200 = "gpu NVIDIA H200"
PICTURES = "{input: {[Tensor[8, 8, 1]], []}, output: {[Category[dark, light]], []}}"


@pytest.fixture
def app(engine: EngineUnderTest, monkeypatch: pytest.MonkeyPatch) -> str:
    """An app of small pictures, of which a core is thought to take long."""
    monkeypatch.setattr(curve_book, "WHOLE_BELOW_S", 1e9)
    caller, rng = engine.caller(), np.random.default_rng(0)
    with engine.store.write() as tx:
        found = declare_app(tx, caller, "light", PICTURES)
    pairs: list[tuple[Any, Any]] = [
        ((rng.random((8, 8, 1)) + i % 2).tolist(), "light" if i % 2 else "dark") for i in range(24)
    ]
    feed(engine.lake, caller, "light", pairs)
    return found.id


def with_gpus(pool: PoolUnderTest, name: str, gpus: int, notes: dict[str, str]) -> None:
    with pool.store.write() as tx:
        devices.seen(tx, name, "local", Room(4.0, 64_000, (1.0,) * gpus), notes)


def candidate_of(job: Job) -> Candidate:
    return Candidate.from_json(job.spec.run.arguments["candidate"])  # type: ignore[union-attr]


def test_networks_go_to_the_gpu_and_tables_to_cores(engine: EngineUnderTest, app: str) -> None:
    pool = PoolUnderTest(engine.lake)
    with_gpus(pool, "box", 1, {"gpu": "NVIDIA H200", "gpu_mb": "143771"})
    started = pool.turn()
    there = [job for job in started if job.spec.resources.gpus]
    assert there
    assert all(is_network(candidate_of(job)) for job in there)
    assert all(job.spec.resources.gpus == 0.25 for job in there)
    assert len(started) == 4
    # Four quarters are given; nothing that would take far longer on a core runs there meanwhile.
    for job in started:
        if not job.spec.resources.gpus:
            one = candidate_of(job)
            assert not is_network(one) or one.cost_s < 4 * gpu_guess(one.cost_s)


def test_a_trial_of_an_app_with_a_budget_may_take_twice_its_time_on_a_gpu_too(
    engine: EngineUnderTest, app: str
) -> None:
    """A GPU costs many times what a core does: the money is reckoned by what the trial takes where it runs."""
    with engine.store.write() as tx:
        set_app_terms(tx, engine.caller(), "light", {"budget": 1000.0})
    pool = PoolUnderTest(engine.lake)
    with_gpus(pool, "box", 1, {"gpu": "NVIDIA H200"})
    there = [job for job in pool.turn() if job.spec.resources.gpus]
    assert there
    with engine.store.read() as tx:
        expected = {one.job_id: one.decision["reasons"]["cost"] for one in app_trials.trials(tx)}
        book = book_now(tx)
    tenant = pool.keeper.state.tenants[app]
    for job in there:
        limit, asked = job.spec.time_limit_s, job.spec.resources
        assert limit is not None
        assert limit >= 2.0 * expected[job.id] * (1 - 1e-9)
        kind = "gpu" if "gpu" in book.gpus else None
        dear = float(book.rate(asked.vcpu, asked.memory_mb, kind, asked.gpus)) / 3600.0
        (lent,) = [one.limit for one in tenant.running if pool.keeper.flights[job.id].trial == one]
        assert lent == pytest.approx(2.0 * expected[job.id] * dear)


def test_what_a_trial_took_on_a_gpu_is_learned_for_that_kind(engine: EngineUnderTest, app: str) -> None:
    pool = PoolUnderTest(engine.lake)
    with_gpus(pool, "box", 1, {"gpu": "NVIDIA H200"})
    job = next(job for job in pool.turn() if job.spec.resources.gpus)
    pool.end(job, 0.9, seconds=300.0, result={"halved": 1})
    pool.turn()
    with engine.store.read() as tx:
        (past,) = trial_history.until(tx, 10)
    assert (past.kind, past.halved) == (H200, 1)
    assert past.kind_s == pytest.approx(300.0)
    one = candidate_of(job)
    before, after = Costs(()), Costs((past,))
    assert after.seconds_on(H200, [one])[0] > 2 * before.seconds_on(H200, [one])[0]
    assert after.seconds_on("gpu other", [one])[0] == before.seconds_on("gpu other", [one])[0]
    assert after.seconds([one])[0] == before.seconds([one])[0]
    # It ran out of memory: the next time it asks for twice the share.
    small = DataSummary(examples=24, cells=64, classes=2, side=8)
    assert after.gpu_share(app, one, small) == 2 * before.gpu_share(app, one, small)
    # Twice that was too little again.
    assert Costs((past, past)).gpu_share(app, one, small) == 4 * before.gpu_share(app, one, small)


def test_without_gpus_networks_run_on_cores_as_ever(engine: EngineUnderTest, app: str) -> None:
    pool = PoolUnderTest(engine.lake)
    with_gpus(pool, "box", 0, {})
    assert all(job.spec.resources.gpus == 0 for job in pool.turn())


def test_a_device_whose_driver_is_away_gives_its_cores_only(engine: EngineUnderTest, app: str) -> None:
    pool = PoolUnderTest(engine.lake)
    with_gpus(pool, "box", 1, {"gpu": "NVIDIA H200", "gpu fault": "the driver does not answer"})
    started = pool.turn()
    assert started
    assert all(job.spec.resources.gpus == 0 for job in started)


def test_a_device_with_gpus_is_two_places(engine: EngineUnderTest) -> None:
    pool = PoolUnderTest(engine.lake)
    pool.device("core")
    with_gpus(pool, "box", 2, {"label gpu": "A100"})
    with engine.store.read() as tx:
        machines = devices.machines(tx)
    assert [gpu_kind(one) for one in machines] == ["gpu A100", ""]
    places = idle(machines, [Taken("box", Resources(1.0, 1024, 0.5))])
    assert [(one.name, one.kind) for one in places] == [
        ("box", "gpu A100"),
        ("box", f"{BESIDE}gpu A100"),
        ("core", f"{BESIDE}gpu A100"),
    ]
    assert places[0].room is not None
    assert sorted(places[0].room.gpus) == [0.5, 1.0]
    full = idle(machines, [Taken("box", Resources(1.0, 1024, 2.0))])
    assert full[0].kind.startswith(BESIDE)


def offer(costs: Costs, book: PriceBook, *candidates: Candidate) -> OnGpus:
    summary = DataSummary(examples=5000, cells=784, classes=10, side=28)
    seconds = costs.seconds(candidates)
    return OnGpus(costs, "a", candidates, summary, seconds, costs.needs("a", candidates, summary), book)


def test_the_kind_of_device_is_decided_by_seconds_and_price(engine: EngineUnderTest) -> None:
    with engine.store.read() as tx:
        book = book_now(tx)
    large, small = Candidate("resnet18", cost_s=900.0), Candidate("convnet", cost_s=2.0)
    table = Candidate("linear", cost_s=900.0)
    free = offer(Costs(()), book.model_copy(update={"gpus": {}}), large, small, table)
    there, beside = free.needs_there(H200), free.needs_there(f"{BESIDE}{H200}")
    assert there is not None
    assert beside is not None
    assert [one is not None for one in there] == [True, False, False]
    assert [one is not None for one in beside] == [False, True, True]
    dear = {"gpu": FlatPrice(per_hour=1e6)}
    costly = offer(Costs(()), book.model_copy(update={"gpus": dear}), large, small, table)
    assert costly.needs_there(H200) == (None, None, None)
    assert all(one is not None for one in costly.needs_there(f"{BESIDE}{H200}") or ())
    assert free.needs_there("") is None
    assert free.times("") is None


def test_a_gpu_that_turns_out_slow_loses_its_trials(engine: EngineUnderTest) -> None:
    """A machine whose torch has no CUDA trains on its processor all the same: that shows in its seconds."""
    with engine.store.read() as tx:
        book = book_now(tx).model_copy(update={"gpus": {}})
    one = Candidate("resnet18", cost_s=200.0)
    past = [
        PastTrial(
            k, AppId("b"), "accuracy", one.name, one.family, 0.5, 200.0, 0.9, 200.0, None, 9, 1.0, H200, 900.0
        )
        for k in range(4)
    ]
    found = offer(Costs(past), book, one)
    assert found.needs_there(H200) == (None,)
    assert found.needs_there(f"{BESIDE}{H200}") == found.needs


def test_trials_that_a_gpu_trains_as_one_program_start_together(engine: EngineUnderTest, app: str) -> None:
    pool = PoolUnderTest(engine.lake)
    with_gpus(pool, "box", 1, {"gpu": "NVIDIA H200"})
    first = pool.turn()
    assert all(job.spec.run.pack is None for job in first)  # type: ignore[union-attr]
    for job in first:
        pool.end(job, 0.6, seconds=5.0)
    packs: dict[str, list[Job]] = {}
    for job in pool.turn():
        run = job.spec.run
        assert isinstance(run, Trial)
        if run.pack is not None:
            assert run.pack.size > 1
            packs.setdefault(run.pack.name, []).append(job)
    assert packs
    for jobs in packs.values():
        run = jobs[0].spec.run
        assert isinstance(run, Trial)
        assert run.pack is not None
        assert len(jobs) == run.pack.size
        shapes = {packing_of(candidate_of(job), DataSummary(24, 64, classes=2, side=8)) for job in jobs}
        assert len(shapes) == 1
        assert None not in shapes
        # together they take the share of one, and may take as long as all of them
        assert sum(job.spec.resources.gpus for job in jobs) == pytest.approx(0.25, abs=0.001)
        assert len({job.spec.time_limit_s for job in jobs}) == 1
    before = dict(pool.keeper.flights)
    pool.restart()
    pool.keeper.turn()
    assert {job: one.trial for job, one in pool.keeper.flights.items() if job in before} == {
        job: one.trial for job, one in before.items()
    }


def test_what_a_pack_took_is_learned_as_what_each_would_have_taken(engine: EngineUnderTest, app: str) -> None:
    pool = PoolUnderTest(engine.lake)
    with_gpus(pool, "box", 1, {"gpu": "NVIDIA H200"})
    for job in pool.turn():
        pool.end(job, 0.6, seconds=5.0)
    packed = [job for job in pool.turn() if job.spec.run.pack is not None]  # type: ignore[union-attr]
    one, other = packed[:2]
    stretch = {job.id: pool.keeper.flights[job.id].trial.pack for job in packed}
    size = one.spec.run.pack.size  # type: ignore[union-attr]
    pool.end(one, 0.7, seconds=60.0, result={"together": size}, peak_memory_mb=10.0)
    pool.end(other, 0.7, seconds=60.0)  # it ran by itself after all
    pool.turn()
    with engine.store.read() as tx:
        past = {one.candidate: one for one in trial_history.until(tx, 100)}
    together, alone = past[candidate_of(one).name], past[candidate_of(other).name]
    place = stretch[one.id]
    assert place is not None
    assert together.kind_s == pytest.approx(60.0 / place.stretch)
    assert alone.kind_s == pytest.approx(60.0)
    assert (together.peak_mb, alone.peak_mb) == (None, 100.0)
