"""The pool kept by a controller: moved by events, or rebuilt from records, it decides the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from easel.declare.page import PageRequest
from easel.errors import Fenced
from easel.flow.apps.declare import change_app, declare_app, delete_app
from easel.flow.apps.feed import feed
from easel.flow.apps.refine import browse, refine
from easel.records.decision import Decision
from easel.schedule.state import PoolDevice
from easel.store import app_trials, tenants
from easel.store.engine import Tx
from easel.testing.engine import EngineUnderTest
from easel.testing.pool import PoolUnderTest

TABLE = "input: {size: number, town: category}\noutput: [no, yes]"
NUMBERS = "input: {size: number}\noutput: number"
ANY = PoolDevice("any")
METRICS = ("balanced_accuracy", "accuracy")


def rows(n: int, seed: int = 0) -> list[tuple[Any, Any]]:
    sizes = np.random.default_rng(seed).normal(size=n)
    return [({"size": float(s), "town": "Bern"}, "yes" if s > 0 else "no") for s in sizes]


def numbers(n: int, seed: int = 0) -> list[tuple[Any, Any]]:
    sizes = np.random.default_rng(seed).normal(size=n)
    return [({"size": float(s)}, float(2 * s)) for s in sizes]


def app(engine: EngineUnderTest, name: str, seed: int, *, who: str = "ana", number: bool = False) -> None:
    caller = engine.caller(who)
    with engine.store.write() as tx:
        declare_app(tx, caller, name, NUMBERS if number else TABLE, "negative_mae" if number else None)
    feed(engine.lake, caller, name, (numbers if number else rows)(12, seed))


def would_decide(pool: PoolUnderTest) -> Decision:
    with pool.store.read() as tx:
        pool.keeper.follow(tx)
    return pool.keeper.decide(ANY)


def test_moved_by_events_or_rebuilt_from_records_the_pool_decides_the_same_to_the_last_bit(
    engine: EngineUnderTest,
) -> None:
    """A random history of everything that may happen; after each step a fresh keeper is asked too."""
    rng = np.random.default_rng(3)
    pool = PoolUnderTest(engine.lake)
    pool.device(vcpu=3.0, memory_mb=16_000)
    for number in range(4):
        app(engine, f"app{number}", number, number=number == 3)
    ana = engine.caller()
    names = [f"app{number}" for number in range(4)]
    for step in range(40):
        pool.turn()
        jobs = pool.waiting()
        match int(rng.integers(10)):
            case 0 if len(names) < 7:
                app(engine, f"late{step}", 100 + step)
                names.append(f"late{step}")
            case 1:
                chosen = names[int(rng.integers(len(names)))]
                if chosen != "app3":
                    feed(engine.lake, ana, chosen, rows(int(rng.integers(1, 8)), 1000 + step))
            case 2:
                with engine.store.write() as tx:
                    chosen = names[int(rng.integers(len(names)))]
                    digests = [one.digest for one in browse(tx, ana, chosen, PageRequest(limit=50)).items]
                    refine(tx, ana, chosen, digests[:2], on=bool(rng.integers(2)))
            case 3 if len(names) > 3:
                with engine.store.write() as tx:
                    delete_app(tx, ana, names.pop(0))
            case 4:
                if names[-1] != "app3":
                    with engine.store.write() as tx:
                        change_app(tx, ana, names[-1], METRICS[step % 2])
            case _:
                pass
        for job in jobs[: int(rng.integers(1, 3))]:
            failed = rng.random() < 0.2
            quality = -float(rng.random()) if job.spec.tags["app"] == "app3" else float(rng.random())
            pool.end(job, None if failed else quality, seconds=float(rng.exponential(3.0)))
        pool.keeper.turn()
        fresh = PoolUnderTest(engine.lake)
        here, there = would_decide(pool), would_decide(fresh)
        assert list(pool.keeper.state.tenants) == list(fresh.keeper.state.tenants)
        for name, tenant in pool.keeper.state.tenants.items():
            other = fresh.keeper.state.tenants[name]
            assert np.array_equal(tenant.belief.mean, other.belief.mean), (step, name)
            assert np.array_equal(tenant.belief.sd, other.belief.sd), (step, name)
            assert np.array_equal(tenant.cost, other.cost)
            assert np.array_equal(tenant.taken, other.taken)
            assert pool.keeper.offers[name].flights == fresh.keeper.offers[name].flights
            same = (tenant.best, tenant.served_at, tenant.spent, tenant.running, tenant.pulls, tenant.held)
            assert same == (other.best, other.served_at, other.spent, other.running, other.pulls, other.held)
        assert here == there, step
    with engine.store.read() as tx:
        assert sum(trial.ended for trial in app_trials.trials(tx)) > 20
        assert tenants.turn(tx).as_of > 0


def test_a_lease_that_was_lost_while_a_trial_starts_is_not_held_against_its_app(
    engine: EngineUnderTest,
) -> None:
    pool = PoolUnderTest(engine.lake)
    pool.device()
    app(engine, "flowers", 0)
    led = [True]

    def guard(tx: Tx) -> None:
        if not led[0]:
            raise Fenced("this controller's lease was taken over")

    pool.keeper.guard = guard
    decide = pool.keeper.decide

    def lose(place: PoolDevice) -> Decision:
        led[0] = False
        return decide(place)

    pool.keeper.decide = lose  # type: ignore[method-assign]
    with pytest.raises(Fenced):
        pool.turn()
    assert pool.keeper.obstacles == {}
    led[0], pool.keeper.decide = True, decide  # type: ignore[method-assign]
    assert len(pool.turn()) == 1
