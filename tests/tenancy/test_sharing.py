"""Apps with the same program and the same examples share their trials."""

from __future__ import annotations

from tests.tenancy.test_keeper import app, rows
from tests.tenancy.test_places import pool_of

from easel.flow.apps.best import best_of
from easel.flow.apps.declare import delete_app
from easel.flow.apps.feed import feed
from easel.flow.terms import set_app_terms
from easel.records.job import JobState
from easel.store import app_trials, apps, jobs
from easel.testing.engine import EngineUnderTest


def test_one_run_serves_both_its_cost_is_divided_and_their_weights_add_up(engine: EngineUnderTest) -> None:
    app(engine, "anas", 0)
    app(engine, "bens", 0, who="ben")
    app(engine, "other", 1)
    pool = pool_of(engine)
    with engine.store.write() as tx:
        set_app_terms(tx, engine.caller(), "other", {"weight": 1.5})
    seen: list[str] = []
    for _ in range(2):
        (job,) = pool.turn()
        seen.append(str(job.spec.tags["app"]))
        pool.end(job, 0.7, seconds=100.0)
    pool.turn()
    assert sorted(seen) == ["anas", "other"]
    with engine.store.read() as tx:
        found = {one.name: one for one in apps.all_apps(tx)}
        mine = app_trials.trials(tx, found["anas"].id)[0]
        theirs = app_trials.trials(tx, found["bens"].id)[0]
        alone = app_trials.trials(tx, found["other"].id)[0]
        assert mine.job_id == theirs.job_id
        assert mine.spent_micros == theirs.spent_micros
        assert (mine.shared, alone.shared) == (2, 1)
        assert 2 * (mine.spent_micros or 0) <= (alone.spent_micros or 0) + 1
        models = [best_of(tx, found[name]) for name in ("anas", "bens")]
    assert [None if one is None else one.model_set for one in models] == [mine.model_set] * 2
    assert pool.keeper.state.tenants[found["anas"].id].weight == 2.0


def test_whoever_comes_later_with_the_same_examples_has_the_models_at_once(engine: EngineUnderTest) -> None:
    app(engine, "first", 0)
    pool = pool_of(engine)
    (job,) = pool.turn()
    pool.end(job, 0.8)
    pool.turn()
    app(engine, "later", 0, who="ben")
    pool.turn()
    with engine.store.read() as tx:
        later = next(one for one in apps.all_apps(tx) if one.name == "later")
        best = best_of(tx, later)
        assert best is not None
        assert (best.quality, best.spent_micros) == (0.8, 0)
    feed(engine.lake, engine.caller("ben"), "later", rows(3, 99))
    pool.turn()
    assert len(pool.keeper.state.tenants) == 2  # from now on each goes its own way
    pool.restart()
    pool.turn()
    assert len(pool.keeper.state.tenants) == 2


def test_deleting_one_of_them_leaves_the_trial_to_the_other(engine: EngineUnderTest) -> None:
    app(engine, "first", 0)
    app(engine, "second", 0, who="ben")
    pool = pool_of(engine)
    (job,) = pool.turn()
    with engine.store.write() as tx:
        delete_app(tx, engine.caller(), "first")
    pool.turn()
    with engine.store.read() as tx:
        assert jobs.find(tx, job.project_id, job.id).state is JobState.QUEUED
    pool.end(job, 0.75)
    pool.turn()
    with engine.store.read() as tx:
        (second,) = apps.all_apps(tx)
        best = best_of(tx, second)
    assert best is not None
    assert best.quality == 0.75


def test_apps_of_two_projects_share_nothing(engine: EngineUnderTest) -> None:
    app(engine, "mine", 0)
    eve = engine.caller("eve", project="bio")
    app(engine, "theirs", 0, who="eve")
    pool = pool_of(engine, vcpu=2.0)
    started = pool.turn()
    assert {job.project_id for job in started} == {engine.caller().project_id, eve.project_id}
    assert len(pool.keeper.state.tenants) == 2
