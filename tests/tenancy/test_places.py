"""Who gets a place: newcomers first, nobody who cannot start, devices as they are."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from tests.tenancy.test_keeper import app, rows

from easel.declare.job import Command, JobSpec
from easel.declare.resources import Resources
from easel.declare.roles import Role
from easel.flow.apps.declare import declare_app
from easel.flow.apps.feed import feed
from easel.flow.budgets import set_budget
from easel.flow.jobs.control import set_queue
from easel.flow.jobs.submit import submit_job
from easel.flow.operate.reserve import cancel, reserve
from easel.flow.prices import places_by_terms, set_prices
from easel.ids import JobId, UserId
from easel.price.book import book_named
from easel.price.budget import Budget
from easel.records.device import LABEL, Drain
from easel.records.standing import Standing
from easel.schedule.interruptions import NEVER, Interruptions
from easel.store import app_trials, apps, devices, identity, jobs
from easel.tenancy.places import idle
from easel.testing.engine import EngineUnderTest
from easel.testing.pool import PoolUnderTest


def pool_of(engine: EngineUnderTest, vcpu: float = 1.0) -> PoolUnderTest:
    pool = PoolUnderTest(engine.lake)
    pool.device(vcpu=vcpu, memory_mb=16_000)
    return pool


def test_a_paused_queue_holds_its_own_trials_and_nobody_elses(engine: EngineUnderTest) -> None:
    """Two cores, two trials of a queue that is then paused: another project's app learns all the same."""
    app(engine, "mine", 0)
    pool = pool_of(engine, vcpu=2.0)
    assert len(pool.turn()) == 2
    ana, eve = engine.caller(), engine.caller("eve", project="bio")
    with engine.store.write() as tx:
        set_queue(tx, replace(ana, role=Role.ADMIN), ana.user.name, paused=True)
        declare_app(tx, eve, "others", "input: {size: number, town: category}\noutput: [no, yes]")
    feed(engine.lake, eve, "others", rows(12, 5))
    assert [job.user_id for job in pool.turn()] == [eve.user.id, eve.user.id]
    (obstacle,) = pool.keeper.obstacles.values()
    assert (obstacle.kind, obstacle.by) == (Standing.QUEUE_PAUSED, ana.user.name)
    assert obstacle.since is not None
    with engine.store.write() as tx:
        set_queue(tx, replace(ana, role=Role.ADMIN), ana.user.name, paused=False)
    assert pool.turn() == []  # its own two trials may start again: all places are promised
    assert pool.keeper.obstacles == {}


def test_a_spent_budget_holds_its_project_and_nobody_else(engine: EngineUnderTest) -> None:
    app(engine, "mine", 0)
    pool = pool_of(engine)
    assert len(pool.turn()) == 1
    ana, eve = engine.caller(), engine.caller("eve", project="bio")
    with engine.store.write() as tx:
        set_budget(tx, replace(ana, role=Role.ADMIN), Budget(0))
        declare_app(tx, eve, "others", "input: {size: number, town: category}\noutput: [no, yes]")
    feed(engine.lake, eve, "others", rows(12, 5))
    assert [job.user_id for job in pool.turn()] == [eve.user.id]
    assert [one.kind for one in pool.keeper.obstacles.values()] == [Standing.PROJECT_BUDGET_SPENT]


def test_a_full_queue_and_an_owner_who_left_hold_nobody_else(engine: EngineUnderTest) -> None:
    app(engine, "mine", 0)
    app(engine, "others", 1, who="ben")
    ana, ben = engine.caller(), engine.caller("ben")
    with engine.store.write() as tx:
        set_queue(tx, replace(ana, role=Role.ADMIN), ana.user.name, max_active=0)
    pool = pool_of(engine)
    (job,) = pool.turn()
    assert job.user_id == ben.user.id
    assert [one.kind for one in pool.keeper.obstacles.values()] == [Standing.QUEUE_FULL]
    with engine.store.write() as tx:
        set_queue(tx, replace(ana, role=Role.ADMIN), ana.user.name, max_active=8)
        identity.remove_member(tx, ben.project_id, UserId(ben.user.id))
    pool.end(job, 0.9)
    (job,) = pool.turn()
    assert job.user_id == ana.user.id
    assert [one.kind for one in pool.keeper.obstacles.values()] == [Standing.NO_RIGHTS]


def test_a_trial_that_fits_no_device_any_more_holds_nobody_else(engine: EngineUnderTest) -> None:
    """Pictures need 2 GB: their trial waits when only a small machine is left, where a table learns all the same."""
    ana, eve = engine.caller(), engine.caller("eve", project="bio")
    pixels = np.random.default_rng(0).integers(255, size=(8, 32, 32, 3))
    with engine.store.write() as tx:
        declare_app(tx, ana, "pictures", "input: {image: image 32 x 32 x 3}\noutput: [cat, dog]")
        declare_app(tx, eve, "table", "input: {size: number, town: category}\noutput: [no, yes]")
    feed(
        engine.lake,
        ana,
        "pictures",
        [(each.tolist(), ("cat", "dog")[n % 2]) for n, each in enumerate(pixels)],
    )
    pool = PoolUnderTest(engine.lake)
    pool.device("large", vcpu=1.0, memory_mb=4096)
    (waiting,) = pool.turn()
    assert waiting.spec.resources.memory_mb == 2048
    with engine.store.write() as tx:
        devices.away(tx, "large")
    pool.device("small", vcpu=1.0, memory_mb=1100)
    feed(engine.lake, eve, "table", rows(12, 5))
    assert [job.user_id for job in pool.turn()] == [eve.user.id]
    assert pool.turn() == []  # the small machine is taken now
    pool.device("large", vcpu=1.0, memory_mb=4096)
    assert [job.user_id for job in pool.turn()] == []  # it is meant for the one that waits


def test_what_runs_on_a_device_that_is_drained_takes_no_room_elsewhere(engine: EngineUnderTest) -> None:
    app(engine, "mine", 0)
    pool = PoolUnderTest(engine.lake)
    pool.device("first", vcpu=1.0)
    (job,) = pool.turn()
    pool.begin(job)
    with engine.store.write() as tx:
        devices.note_jobs(tx, {f"{job.id}.{job.attempt}": "first"})
        devices.set_drain(tx, "first", Drain(tx.now, None, "a new disk"))
    pool.device("second", vcpu=1.0)
    (other,) = pool.turn()
    with engine.store.read() as tx:
        found = {trial.job_id: trial.decision["device"] for trial in app_trials.trials(tx)}
    assert found == {job.id: "first", other.id: "second"}


def test_the_first_trial_of_a_new_app_starts_before_further_ones_of_others(engine: EngineUnderTest) -> None:
    app(engine, "old", 0)
    pool = pool_of(engine)
    (job,) = pool.turn()
    for number in range(3):
        app(engine, f"new{number}", 10 + number)
    for _ in range(3):
        pool.end(job, 0.55, seconds=1.0)
        (job,) = pool.turn()
        assert str(job.spec.tags["app"]).startswith("new")
    with engine.store.read() as tx:
        assert len({trial.app_id for trial in app_trials.trials(tx)}) == 4


def test_a_trial_goes_to_the_fastest_device_that_has_room_for_it(engine: EngineUnderTest) -> None:
    app(engine, "mine", 0)
    pool = PoolUnderTest(engine.lake)
    pool.device("slow", vcpu=1.0)
    pool.device("fast", vcpu=1.0, notes={"speed": "4"})
    pool.device("tiny", vcpu=8.0, memory_mb=256, notes={"speed": "9"})
    first, second = pool.turn()
    with engine.store.read() as tx:
        found = {trial.job_id: trial.decision for trial in app_trials.trials(tx)}
    assert [found[first.id]["device"], found[second.id]["device"]] == ["fast", "slow"]


def test_a_trial_may_run_a_multiple_of_its_prediction_and_no_fixed_time(engine: EngineUnderTest) -> None:
    app(engine, "mine", 0)
    pool = pool_of(engine)
    (job,) = pool.turn()
    with engine.store.read() as tx:
        (trial,) = app_trials.trials(tx)
    predicted = float(trial.decision["reasons"]["cost"])
    assert job.spec.time_limit_s == max(60.0, 4.0 * predicted)
    assert job.spec.resources.memory_mb < 2048


def test_an_app_deleted_while_its_trial_runs_frees_its_place_at_once(engine: EngineUnderTest) -> None:
    from easel.flow.apps.declare import delete_app

    app(engine, "mine", 0)
    app(engine, "others", 1)
    pool = pool_of(engine)
    (job,) = pool.turn()
    with engine.store.write() as tx:
        delete_app(tx, engine.caller(), str(job.spec.tags["app"]))
    (after,) = pool.turn()
    assert after.spec.tags["app"] != job.spec.tags["app"]
    pool.end(job, 0.9)  # its report comes late
    assert pool.turn() == []
    with engine.store.read() as tx:
        assert {one.app_id for one in app_trials.trials(tx)} == {apps.all_apps(tx)[0].id}
        assert jobs.find(tx, job.project_id, job.id) is not None


def test_another_controller_that_was_quicker_makes_this_one_read_the_records_again(
    engine: EngineUnderTest,
) -> None:
    app(engine, "mine", 0)
    pool, other = pool_of(engine, vcpu=2.0), PoolUnderTest(engine.lake)
    with engine.store.read() as tx:
        pool.keeper.follow(tx)
        other.keeper.follow(tx)
    assert len(other.turn()) == 2
    pool.keeper.turn()
    with engine.store.read() as tx:
        assert len(app_trials.trials(tx)) == 2


def test_a_trial_on_a_spot_device_is_priced_and_billed_as_such(engine: EngineUnderTest) -> None:
    app(engine, "mine", 0)
    root = engine.caller()
    admin = replace(root, user=replace(root.user, platform_admin=True))
    with engine.store.write() as tx:
        set_prices(tx, admin, book_named("n1-mixed"))
    pool = PoolUnderTest(engine.lake)
    pool.device("firm", vcpu=1.0, notes={f"{LABEL}terms": "on-demand"})
    pool.device("cloud", vcpu=1.0, notes={f"{LABEL}terms": "spot"})
    started = pool.turn()
    assert sorted(job.spec.wants["terms"] for job in started) == ["on-demand", "spot"]
    with engine.store.read() as tx:
        found = {one.name: one for one in idle(devices.machines(tx), (), places_by_terms(tx))}
    assert {name: one.price for name, one in found.items()} == {"firm": 1.0, "cloud": pytest.approx(0.3)}
    assert found["cloud"].interruptions == Interruptions(per_hour=0.1, restart_s=120.0, checkpoint_s=600.0)
    assert found["firm"].interruptions == NEVER
    for job in started:
        pool.end(job, 0.8, seconds=0.001)  # the book bills a minute at least
    pool.turn()
    with engine.store.read() as tx:
        spent = {t.job_id: t.spent_micros for t in app_trials.trials(tx) if t.ended}
    by_terms = {job.spec.wants["terms"]: spent[job.id] or 0 for job in started}
    memory = {job.spec.resources.memory_mb for job in started}
    assert len(memory) == 1
    assert by_terms["spot"] == pytest.approx(0.3 * by_terms["on-demand"], rel=1e-3)


def test_a_device_with_a_price_of_its_own_is_billed_as_the_pool_reckons(engine: EngineUnderTest) -> None:
    app(engine, "mine", 0)
    pool = PoolUnderTest(engine.lake)
    pool.device("cheap", vcpu=1.0)
    pool.device("dear", vcpu=1.0, notes={f"{LABEL}price": "3"})
    cheap, dear = sorted(pool.turn(), key=lambda job: job.spec.wants.get("price", ""))
    assert (cheap.spec.wants, dear.spec.wants) == ({}, {"price": "3"})
    assert cheap.spec.resources == dear.spec.resources
    for job in (cheap, dear):
        pool.end(job, 0.8, seconds=1000.0)
    pool.turn()
    with engine.store.read() as tx:
        places = {one.name: one.price for one in idle(devices.machines(tx), ())}
        spent = {t.job_id: t.spent_micros for t in app_trials.trials(tx) if t.ended}
    assert places == {"cheap": 1.0, "dear": 3.0}
    assert spent[dear.id] == pytest.approx(3 * (spent[cheap.id] or 0), rel=1e-6)


def user_job(
    engine: EngineUnderTest,
    pool: PoolUnderTest,
    *,
    begun: bool = True,
    who: str = "ben",
    preemptible: bool = False,
) -> JobId:
    """A job of one core that somebody submitted."""
    caller, command = engine.caller(who), Command(("sleep", "60"))
    spec = JobSpec("sweep", command, resources=Resources(1.0, 512), preemptible=preemptible)
    with engine.store.write() as tx:
        job = submit_job(tx, caller, spec)
    if begun:
        pool.begin(job)
    return job.id


def test_what_jobs_of_people_hold_is_not_given_to_trials(engine: EngineUnderTest) -> None:
    app(engine, "mine", 0)
    pool = pool_of(engine, vcpu=3.0)
    first, second = user_job(engine, pool), user_job(engine, pool)
    (trial,) = pool.turn()
    assert pool.turn() == []
    pool.begin(trial)
    assert pool.turn() == [], "nobody waits: what runs next is chosen when there is room"
    pool.end(first, result={})
    (after,) = pool.turn()
    pool.begin(after)
    pool.end(second, result={})
    assert len(pool.turn()) == 1


def test_on_a_pool_full_of_jobs_with_more_of_them_waiting_one_trial_stands_in_line(
    engine: EngineUnderTest,
) -> None:
    """Whose turn it is then is said by the shares of the queue; the rest is chosen when that one begins."""
    app(engine, "mine", 0)
    app(engine, "others", 1)
    pool = pool_of(engine, vcpu=2.0)
    held = [user_job(engine, pool) for _ in range(2)]
    for _ in range(3):
        user_job(engine, pool, begun=False)
    (trial,) = pool.turn()
    assert pool.turn() == []
    pool.end(held[0], result={})
    pool.begin(trial)
    assert len(pool.turn()) == 1, "its place in the line is free again"


def test_on_a_pool_full_of_jobs_that_may_be_stopped_one_trial_stands_in_line(engine: EngineUnderTest) -> None:
    """Whoever waits in no line has no claim to which such a job could give way."""
    app(engine, "mine", 0)
    pool = pool_of(engine)
    user_job(engine, pool, preemptible=True)
    assert len(pool.turn()) == 1
    assert pool.turn() == []


def test_a_reserved_device_is_offered_to_its_project_only(engine: EngineUnderTest) -> None:
    """Else somebody's trial is meant for a device on which it may not begin, and the project's own gets none."""
    app(engine, "mine", 0)
    eve = engine.caller("eve", project="bio")
    with engine.store.write() as tx:
        declare_app(tx, eve, "others", "input: {size: number, town: category}\noutput: [no, yes]")
    feed(engine.lake, eve, "others", rows(12, 5))
    pool = PoolUnderTest(engine.lake)
    pool.device("kept", vcpu=2.0)
    pool.device("free", vcpu=1.0)
    root = replace(engine.caller(), user=replace(engine.caller().user, platform_admin=True))
    with engine.store.write() as tx:
        until = tx.now + timedelta(hours=1)
        made = reserve(tx, root, "kept", "bio", tx.now - timedelta(hours=1), until)
    started = pool.turn()
    with engine.store.read() as tx:
        devices_of = {one.job_id: one.decision["device"] for one in app_trials.trials(tx)}
    on = [(devices_of[job.id], job.project_id) for job in started]
    assert on.count(("kept", eve.project_id)) == 2
    assert on.count(("free", engine.caller().project_id)) == 1
    pool.end(started[-1], 0.9)
    with engine.store.write() as tx:
        cancel(tx, root, made.id)
    for job in started[:-1]:
        pool.end(job, 0.9)
    after = pool.turn()
    assert len(after) == 3
