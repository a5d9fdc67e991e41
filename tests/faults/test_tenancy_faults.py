"""The pool under faults: controllers that die, crowds, odd histories, terms at their ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import insert
from tests.flow.apps.test_apps import Later
from tests.tenancy.test_keeper import ANY, TABLE, app, rows, would_decide

from easel.flow.apps import learned_book, ready
from easel.flow.apps.declare import change_app, declare_app
from easel.flow.apps.feed import feed
from easel.flow.experience import laws
from easel.flow.experience.file import read_experience
from easel.flow.terms import set_app_terms
from easel.records.standing import Standing
from easel.store import app_trials, apps, tenants, trial_history
from easel.store.schema.apps import app_examples
from easel.store.schema.apps import apps as app_table
from easel.testing.engine import EngineUnderTest, running
from easel.testing.pool import PoolUnderTest


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EngineUnderTest]:
    with running(tmp_path / "home") as made:
        yield made


class Killed(Exception):
    """The process is no more."""


def test_a_controller_killed_between_any_two_events_is_followed_by_the_same_decisions(
    engine: EngineUnderTest,
) -> None:
    """At every transaction of a turn the process may end: before it, or after it was committed."""
    for number in range(2):
        app(engine, f"app{number}", number)
    steady = PoolUnderTest(engine.lake)
    steady.device(vcpu=2.0)
    steady.turn()
    for cut in range(6):
        for job in steady.waiting()[:1]:
            steady.end(job, 0.6 + 0.01 * cut)
        writes = 0

        def check(tx: Any, cut: int = cut) -> None:
            nonlocal writes
            writes += 1
            if writes > cut % 3:
                raise Killed

        doomed = PoolUnderTest(engine.lake)
        doomed.keeper.guard = check
        with suppress(Killed):
            doomed.keeper.turn()
        heir, other = PoolUnderTest(engine.lake), PoolUnderTest(engine.lake)
        heir.keeper.turn()
        assert would_decide(heir) == would_decide(other)
        with engine.store.read() as tx:
            found = app_trials.trials(tx)
            assert len({trial.job_id for trial in found}) == len(found)
            assert sum(not trial.ended for trial in found) == 2
            assert tenants.turn(tx).turn == len(found)


def begun(engine: EngineUnderTest) -> list[tuple[str, str]]:
    """App and candidate of every trial, in the order of the decisions."""
    with engine.store.read() as tx:
        names = {one.id: one.name for one in apps.all_apps(tx)}
        return [(names[one.app_id], one.name) for one in app_trials.trials(tx)]


def test_a_pool_whose_controllers_die_all_the_time_starts_what_one_that_lives_starts(
    engine: EngineUnderTest, tmp_path: Path
) -> None:
    """Two installations with the same history: in one every controller dies after some of its transactions."""
    with running(tmp_path / "calm") as calm:
        lived, died = PoolUnderTest(calm.lake), PoolUnderTest(engine.lake)
        for pool, here in ((lived, calm), (died, engine)):
            pool.device(vcpu=2.0, memory_mb=16_000)
            for number in range(3):
                app(here, f"app{number}", number)
        for step in range(12):
            lived.keeper.turn()
            left = step % 4

            def check(tx: Any) -> None:
                nonlocal left
                left -= 1
                if left < 0:
                    raise Killed

            died.keeper.guard = check
            with suppress(Killed):
                died.keeper.turn()
            died.restart()
            died.keeper.turn()
            assert begun(engine) == begun(calm), step
            for pool in (lived, died):
                quality = None if step == 5 else 0.5 + 0.03 * step
                pool.end(pool.waiting()[-1 if step % 2 else 0], quality, seconds=1.0 + step)
        assert len(begun(calm)) > 12


def test_a_thousand_apps_arrive_at_once_and_each_gets_its_first_trial_in_turn(
    engine: EngineUnderTest,
) -> None:
    app(engine, "old", 0)
    pool = PoolUnderTest(engine.lake)
    pool.device()
    (job,) = pool.turn()
    with engine.store.write() as tx:
        old = apps.all_apps(tx)[0]
        kept = {
            "project_id": old.project_id,
            "user_id": old.user_id,
            "program": old.program,
            "summary": old.summary,
            "examples_set": old.examples_set,
            "created_at": old.created_at,
        }
        names = [f"app_{k:04d}" for k in range(1000)]
        tx.execute(
            insert(app_table),
            [{"id": name, "name": name, "examples_key": f"{k:032x}", **kept} for k, name in enumerate(names)],
        )
        tx.execute(
            insert(app_examples),
            [
                {
                    "app_id": name,
                    "digest": f"{n:032x}",
                    "stratum": str(n % 2),
                    "fold": 0,
                    "on": True,
                    "fed_at": old.created_at,
                }
                for name in names
                for n in range(6)
            ],
        )
        for name in names:
            tx.emit("app.fed", name, project_id=old.project_id, body={})
    served = set()
    for _ in range(5):
        pool.end(job, 0.9)
        (job,) = pool.turn()
        served.add(job.spec.tags["app"])
    assert len(pool.keeper.state.tenants) == 1001
    assert len(served) == 5
    assert "old" not in served


def test_history_with_vanished_candidates_no_numbers_and_another_metric_is_ordinary(
    engine: EngineUnderTest,
) -> None:
    app(engine, "mine", 0)
    pool = PoolUnderTest(engine.lake)
    pool.device()
    (job,) = pool.turn()
    odd: dict[str, Any] = {
        "app_id": "app_gone",
        "family": "gone",
        "promise": 0.5,
        "guess_s": 0.0,
        "seconds": 0.0,
        "peak_mb": None,
        "examples": 0,
    }
    with engine.store.write() as tx:
        trial_history.add(
            tx,
            [
                {**odd, "metric": "no such metric", "candidate": "gone(x=1)", "quality": -1e300},
                {**odd, "metric": "accuracy", "candidate": "svm(C=3)", "quality": None},
                {**odd, "metric": "negative_mae", "candidate": "", "quality": -0.0},
            ],
        )
    pool.end(job, result={"quality": float("nan")})
    (job,) = pool.turn()
    with engine.store.write() as tx:
        change_app(tx, engine.caller(), "mine", "balanced_accuracy")
    (other,) = pool.turn()
    assert other.id != job.id
    pool.end(other, 0.7)
    pool.keeper.turn()
    assert would_decide(pool) == would_decide(PoolUnderTest(engine.lake))
    with engine.store.read() as tx:
        ended = [trial.quality for trial in app_trials.trials(tx) if trial.ended]
    assert ended == [None, 0.7]  # what ran under the other metric is forgotten, what failed has failed


@pytest.mark.parametrize(
    "damage",
    [None, b"", b"{", b"\xff\xfe\x00", b"[]", b'{"version": 0, "sets": [{"name": "a"}]}', b'{"sets": 5}'],
    ids=["missing", "empty", "half", "binary", "no object", "older", "no sets"],
)
def test_without_a_file_of_experience_that_can_be_read_the_pool_begins_with_promises(
    engine: EngineUnderTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes | None
) -> None:
    path = tmp_path / "experience.json"
    if damage is not None:
        path.write_bytes(damage)
    found = read_experience(path)
    assert found.sets == ()
    monkeypatch.setattr(learned_book, "packaged_experience", lambda: found)
    monkeypatch.setattr(laws, "_packaged_laws", lambda classes: laws.laws_of(found, classes=classes))
    ready._candidates.cache_clear()
    app(engine, "mine", 0)
    pool = PoolUnderTest(engine.lake)
    pool.device()
    (job,) = pool.turn()
    pool.end(job, 0.8)
    assert len(pool.turn()) == 1
    assert would_decide(pool) == would_decide(PoolUnderTest(engine.lake))
    ready._candidates.cache_clear()


def test_a_deadline_that_passed_while_no_controller_ran_stops_its_app_and_nobody_else(
    engine: EngineUnderTest,
) -> None:
    clock = Later(engine.store.clock)
    engine.store.clock = clock
    app(engine, "late", 0)
    app(engine, "other", 1)
    with engine.store.write() as tx:
        set_app_terms(tx, engine.caller(), "late", {"deadline": tx.now + timedelta(minutes=5)})
    pool = PoolUnderTest(engine.lake)
    pool.device(vcpu=2.0, memory_mb=16_000)
    first = pool.turn()
    assert {job.spec.tags["app"] for job in first} == {"late", "other"}
    clock.by = 3600.0
    heir = PoolUnderTest(engine.lake)
    heir.device(vcpu=2.0, memory_mb=16_000)
    for job in first:
        heir.end(job, 0.7)
    after = heir.turn()
    assert [job.spec.tags["app"] for job in after] == ["other", "other"]
    with engine.store.read() as tx:
        late = apps.find(tx, engine.caller().project_id, "late")
        assert [one.quality for one in app_trials.trials(tx, late.id)] == [0.7], "what it had begun counts"
    assert heir.keeper.obstacles[late.id].kind is Standing.DEADLINE_PASSED


def test_a_budget_of_zero_stops_its_app_and_nobody_else(engine: EngineUnderTest) -> None:
    app(engine, "poor", 0)
    app(engine, "other", 1)
    with engine.store.write() as tx:
        set_app_terms(tx, engine.caller(), "poor", {"budget": 0})
    pool = PoolUnderTest(engine.lake)
    pool.device(vcpu=2.0, memory_mb=16_000)
    assert [job.spec.tags["app"] for job in pool.turn()] == ["other", "other"]


@pytest.mark.parametrize("weight", [0.0, 1e6])
def test_weights_at_their_ends_stop_nobody(engine: EngineUnderTest, weight: float) -> None:
    app(engine, "mine", 0)
    app(engine, "other", 1)
    with engine.store.write() as tx:
        set_app_terms(tx, engine.caller(), "mine", {"weight": weight})
    pool = PoolUnderTest(engine.lake)
    pool.device(vcpu=4.0, memory_mb=16_000)
    assert len(pool.turn()) == 4
    decision = pool.keeper.decide(ANY)
    assert np.isfinite(decision.reasons.acquisition)  # type: ignore[union-attr]


def test_examples_of_one_app_fed_while_another_is_declared_twice_are_kept_apart(
    engine: EngineUnderTest,
) -> None:
    ana = engine.caller()
    with engine.store.write() as tx:
        declare_app(tx, ana, "empty", TABLE)
    app(engine, "full", 3)
    pool = PoolUnderTest(engine.lake)
    pool.device()
    assert len(pool.turn()) == 1
    assert len(pool.keeper.offers) == 1
    feed(engine.lake, ana, "empty", rows(12, 8))
    pool.turn()
    assert len(pool.keeper.offers) == 2
