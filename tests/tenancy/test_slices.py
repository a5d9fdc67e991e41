"""Trials of the live pool slice by slice: gone on with, given way to newcomers, the same after a restart."""

from __future__ import annotations

import itertools
import math
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from easel.declare.job import Trial
from easel.flow.apps import curve_book, dossier
from easel.flow.apps.declare import declare_app, delete_app
from easel.flow.apps.feed import feed
from easel.flow.apps.infer import Models, infer
from easel.match.candidate import Candidate
from easel.match.slices import goes_on
from easel.records.attempt import EndReason
from easel.records.decision import Decision
from easel.records.job import TERMINAL, Job, JobState
from easel.schedule.curve_belief import CurveBelief
from easel.schedule.state import PoolDevice
from easel.store import app_trials, devices, job_placements, jobs, trial_history
from easel.store.events import events_after
from easel.tenancy.rules import Rules
from easel.testing.engine import EngineUnderTest, until
from easel.testing.pool import PoolUnderTest

TABLE = "input: {size: number, town: category}\noutput: [no, yes]"
ANY = PoolDevice("any")


@pytest.fixture(autouse=True)
def _everything_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """However quick a trial is thought to be."""
    monkeypatch.setattr(curve_book, "WHOLE_BELOW_S", 0.0)
    monkeypatch.setattr(dossier, "LEAST_SLICE_S", 0.0)


def rows(n: int, seed: int = 0) -> list[tuple[Any, Any]]:
    sizes = np.random.default_rng(seed).normal(size=n)
    return [({"size": float(s), "town": "Bern"}, "yes" if s > 0 else "no") for s in sizes]


def app(engine: EngineUnderTest, name: str, seed: int = 0, n: int = 12, who: str = "ana") -> None:
    caller = engine.caller(who)
    with engine.store.write() as tx:
        declare_app(tx, caller, name, TABLE)
    feed(engine.lake, caller, name, rows(n, seed))


def arguments(job: Job) -> dict[str, Any]:
    assert isinstance(job.spec.run, Trial)
    return dict(job.spec.run.arguments)


def would_decide(pool: PoolUnderTest) -> Decision:
    with pool.store.read() as tx:
        pool.keeper.follow(tx)
    return pool.keeper.decide(ANY)


def test_a_trial_begins_with_a_short_slice_and_goes_on_from_what_it_left(engine: EngineUnderTest) -> None:
    pool = PoolUnderTest(engine.lake)
    pool.device()
    app(engine, "flowers")
    seen: dict[str, list[Job]] = {}
    for _ in range(40):
        (job,) = pool.turn()
        told = arguments(job)
        if told["candidate"]["family"] != "ensemble":
            seen.setdefault(Candidate.from_json(told["candidate"]).name, []).append(job)
        pool.end(job, 0.7, result={"reached": told.get("until", 1.0)})
    several = {name: found for name, found in seen.items() if len(found) > 1}
    assert several
    for name, found in several.items():
        shares = [arguments(job)["until"] for job in found]
        assert shares == sorted(set(shares)), "each slice goes further than the one before"
        candidate = Candidate.from_json(arguments(found[0])["candidate"])
        for before, after in itertools.pairwise(found):
            with engine.store.read() as tx:
                left = jobs.rows(tx, [before.id])[before.id].output_set
            assert after.spec.resume == (left if goes_on(candidate) else None), name
    assert all(job.spec.resume is None for found in seen.values() for job in found[:1])


def test_a_trial_goes_on_with_the_examples_on_which_it_was_begun(engine: EngineUnderTest) -> None:
    """Whoever feeds meanwhile: what the slice saw is what its result counts for."""
    pool = PoolUnderTest(engine.lake)
    pool.device()
    app(engine, "flowers", n=40)
    for number in range(200):
        (job,) = pool.turn()
        told = arguments(job)
        if told["candidate"]["family"] != "ensemble" and job.spec.resume is not None:
            break
        if number == 2:
            feed(engine.lake, engine.caller(), "flowers", rows(1, 1000))
        pool.end(job, 0.7, result={"reached": told.get("until", 1.0)})
    assert job.spec.resume is not None
    with engine.store.read() as tx:
        name = Candidate.from_json(told["candidate"]).name
        mine = [one for one in app_trials.trials(tx) if one.name == name]
        inputs = {row.input_set for row in jobs.rows(tx, [one.job_id for one in mine]).values()}
        assert len({one.examples for one in mine}) == 1
    assert len(inputs) == 1


def test_moved_by_events_or_rebuilt_from_records_slices_are_decided_the_same_to_the_last_bit(
    engine: EngineUnderTest,
) -> None:
    rng = np.random.default_rng(5)
    pool = PoolUnderTest(engine.lake)
    pool.device(vcpu=3.0, memory_mb=16_000, notes={"speed": "2"})
    for number in range(4):
        app(engine, f"app{number}", number)
    for step in range(16):
        pool.turn()
        for job in pool.waiting()[: int(rng.integers(1, 3))]:
            wanted = arguments(job).get("until", 1.0)
            reached = wanted * (rng.random() if rng.random() < 0.3 else 1.0)
            failed = rng.random() < 0.1
            quality = None if failed else float(rng.random())
            result = None if failed else {"reached": reached}
            pool.end(job, quality, seconds=float(rng.exponential(3.0)), result=result)
        if step == 8:
            app(engine, "late", 100)
        pool.keeper.turn()
        fresh = PoolUnderTest(engine.lake)
        here, there = would_decide(pool), would_decide(fresh)
        for name, tenant in pool.keeper.state.tenants.items():
            other = fresh.keeper.state.tenants[name]
            belief, rebuilt = tenant.belief, other.belief
            assert isinstance(belief, CurveBelief)
            assert isinstance(rebuilt, CurveBelief)
            assert np.array_equal(belief.quality.mean, rebuilt.quality.mean), (step, name)
            assert np.array_equal(belief.costs_ahead(), rebuilt.costs_ahead()), (step, name)
            assert np.array_equal(belief.progress, rebuilt.progress)
            assert np.array_equal(tenant.taken, other.taken)
            same = [(t.best, t.spent, t.running, t.held) for t in (tenant, other)]
            assert same[0] == same[1]
            assert [repr(one) for one in tenant.pulls] == [repr(one) for one in other.pulls]
        assert here == there, step


def test_a_slice_gives_way_to_a_newcomer_once_and_nothing_of_it_is_lost(engine: EngineUnderTest) -> None:
    pool = PoolUnderTest(engine.lake)
    pool.device()
    app(engine, "flowers", 0)
    for number in itertools.count():
        (job,) = pool.turn()
        if number and goes_on(Candidate.from_json(arguments(job)["candidate"])):
            break
        pool.end(job, 0.6, result={"reached": arguments(job).get("until", 1.0)})
    pool.begin(job)
    app(engine, "newcomer", 1, who="ben")
    assert pool.turn() == []
    assert asked(engine) == [job.id]
    pool.restart()
    assert pool.turn() == []
    assert asked(engine) == [job.id], "a controller that comes after asks nobody else"
    reached = arguments(job)["until"] / 2
    pool.end(job, 0.65, seconds=2.0, result={"reached": reached})
    (first,) = pool.turn()
    assert first.spec.tags["app"] == "newcomer"
    pool.end(first, 0.6, result={"reached": 1.0})
    for _ in range(300):
        (later,) = pool.turn()
        same = arguments(later)["candidate"] == arguments(job)["candidate"]
        if later.spec.resume is not None and same and later.spec.tags["app"] == "flowers":
            break
        pool.end(later, 0.6, result={"reached": arguments(later).get("until", 1.0)})
    with engine.store.read() as tx:
        assert later.spec.resume == jobs.rows(tx, [job.id])[job.id].output_set
        (row,) = [one for one in app_trials.trials(tx) if one.job_id == job.id]
    assert (row.share, row.quality) == (reached, 0.65)


def asked(engine: EngineUnderTest) -> list[str]:
    with engine.store.read() as tx:
        return [e.subject for e in events_after(tx, None, 0, 10_000) if e.kind == "job.asked_to_give_way"]


def learning_job(engine: EngineUnderTest, family: str, share: float, **fields: Any) -> Job:
    """A slice of a trial of the app `flowers`, by hand."""
    from easel.flow.apps.ready import candidates_of
    from easel.flow.apps.trial_job import earlier_slice, learn_spec
    from easel.flow.jobs.submit import submit_job
    from easel.store import apps

    ana = engine.caller()
    before: Job | None = fields.get("after")
    with engine.store.write() as tx:
        found = apps.find(tx, ana.project_id, "flowers")
        candidate = next(one for one in candidates_of(found) if one.family == family)
        earlier = None if before is None else earlier_slice(tx, before.id, engine.job(before).output_set)
        need = engine.defaults.get("need") or _need()
        return submit_job(tx, ana, learn_spec(tx, found, candidate, need, 240.0, share, earlier))


def _need() -> Any:
    from easel.declare.resources import Resources

    return Resources(1.0, 1500)


def wipe_checkpoints(engine: EngineUnderTest) -> None:
    shutil.rmtree(engine.home / "run" / "checkpoints", ignore_errors=True)


@pytest.mark.slow
def test_slices_on_the_engine_outlive_their_worker_their_device_and_damage(
    engine: EngineUnderTest, tmp_path: Path
) -> None:
    app(engine, "flowers", n=1200)
    controller = engine.controller()
    first = learning_job(engine, "tabm", 1 / 12)
    (first,) = engine.finish(controller, first, seconds=240)
    assert first.state is JobState.FINISHED, first.reason
    assert first.result is not None
    assert math.isclose(first.result["reached"], 1 / 12)
    # The device is gone, with what lay on it; the lake has the checkpoint.
    engine.end_worker()
    wipe_checkpoints(engine)
    second = learning_job(engine, "tabm", 1 / 4, after=first)
    engine.turn_until(controller, lambda: engine.job(second).state is JobState.RUNNING, 60)
    # The worker dies in the middle of a slice.
    pid = engine.worker_pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    (second,) = engine.finish(controller, second, seconds=240)
    assert second.state is JobState.FINISHED, second.reason
    assert second.result is not None
    epochs = first.result["resumed_epochs"] + second.result["resumed_epochs"]
    assert epochs > 0, "it went on from the first slice"
    # The next one is asked to give way as soon as it runs.
    third = learning_job(engine, "tabm", 1.0, after=second)
    engine.turn_until(controller, lambda: engine.job(third).state is JobState.RUNNING, 60)
    with engine.store.write() as tx:
        job_placements.ask_to_give_way(tx, [third.id])
    (third,) = engine.finish(controller, third, seconds=240)
    assert third.state is JobState.FINISHED, third.reason
    assert third.result is not None
    assert 0.25 < third.result["reached"] < 1.0
    assert third.result["stopped"] == "gave way"
    assert third.result["resumed_epochs"] > second.result["resumed_epochs"]
    with engine.store.write() as tx:
        assert job_placements.ask_to_give_way(tx, [third.id]) == [], "who ended by itself is asked nothing"
    until(lambda: engine.job(third).state in TERMINAL)


def test_the_model_of_a_slice_serves(engine: EngineUnderTest, tmp_path: Path) -> None:
    app(engine, "flowers", n=60)
    controller, pool = engine.controller(), PoolUnderTest(engine.lake, Rules(least_limit_s=900.0))
    engine.turn_until(controller, lambda: controller.connected)
    started = pool.turn()
    for ended in engine.finish(controller, *started, seconds=240):
        assert ended.state is JobState.FINISHED, ended.reason
        assert ended.result is not None
        assert ended.result["reached"] < 1.0
    pool.turn()
    ask = [{"size": 2.0, "town": "Bern"}]
    found = infer(engine.lake, Models(tmp_path), engine.caller(), "flowers", ask)
    assert found.answers[0]["label"] == "yes"


def test_slices_are_chosen_for_a_kind_of_device_and_run_there_while_there_is_one(
    engine: EngineUnderTest,
) -> None:
    """Two devices that differ by a declared speed: what takes long goes to the fast one, predicted for it."""
    pool = PoolUnderTest(engine.lake)
    pool.device("slow", notes={"label speed": "0.5"})
    pool.device("fast", notes={"label speed": "4"})
    app(engine, "flowers")
    started = pool.turn()
    assert sorted(job.spec.wants["speed"] for job in started) == ["0.5", "4"]
    with engine.store.read() as tx:
        found = {one.decision["device"]: one for one in app_trials.trials(tx)}
    assert {name: one.scale for name, one in found.items()} == {"slow": 2.0, "fast": 0.25}
    for job in started:
        pool.end(job, 0.6, seconds=2.0, result={"reached": arguments(job)["until"]})
    pool.keeper.turn()
    (tenant,) = pool.keeper.state.tenants.values()
    took = {pull.candidate: pull.seconds for pull in tenant.pulls}
    by_device = {name: took[tenant.candidates.index(one.name)] for name, one in found.items()}
    assert by_device["slow"] == pytest.approx(1.0, rel=1e-6), "two seconds of it are one of the reference"
    assert by_device["fast"] == pytest.approx(8.0, rel=1e-6)
    # The fast device leaves: who waits for it may run anywhere.
    waiting = [job for job in pool.waiting() if job.spec.wants.get("speed") == "4"]
    assert waiting
    with engine.store.write() as tx:
        devices.away(tx, "fast")
    pool.turn()
    assert not [job for job in pool.waiting() if job.spec.wants.get("speed") == "4"]


def test_a_slice_that_the_platform_lost_says_nothing_of_its_candidate(engine: EngineUnderTest) -> None:
    pool = PoolUnderTest(engine.lake)
    pool.device()
    app(engine, "flowers")
    (job,) = pool.turn()
    chosen = arguments(job)["candidate"]
    lost = 0
    for _ in range(200):
        if arguments(job)["candidate"] == chosen:
            lost += 1
            pool.end(job, None, end=EndReason.DEVICE_LOST)
        else:
            pool.end(job, 0.5, result={"reached": arguments(job).get("until", 1.0)})
        if lost == 3:
            break
        (job,) = pool.turn()
    assert lost == 3, "it is tried again, though not for ever"
    pool.keeper.turn()
    (tenant,) = pool.keeper.state.tenants.values()
    name = Candidate.from_json(chosen).name
    assert tenant.taken[tenant.candidates.index(name)]
    fresh = PoolUnderTest(engine.lake)
    would_decide(fresh)
    (rebuilt,) = fresh.keeper.state.tenants.values()
    assert rebuilt.taken[rebuilt.candidates.index(name)]


def test_a_slice_that_ends_by_itself_when_it_is_asked_to_give_way_counts_for_all_that_it_reached(
    engine: EngineUnderTest,
) -> None:
    pool = PoolUnderTest(engine.lake)
    pool.device()
    app(engine, "flowers")
    for _ in range(200):
        (job,) = pool.turn()
        told = arguments(job)
        candidate = told["candidate"]
        if "until" in told and candidate["family"] != "ensemble" and goes_on(Candidate.from_json(candidate)):
            with engine.store.read() as tx:
                if app_trials.ended(tx):
                    break
        pool.end(job, 0.6, result={"reached": told.get("until", 1.0)})
    pool.begin(job)
    app(engine, "birds", seed=7)
    pool.turn()
    assert asked(engine) == [job.id]
    pool.end(job, 0.7, result={"reached": told["until"]})  # it was at its end before it heard of it
    (next_one,) = pool.turn()
    assert next_one.spec.tags["app"] == "birds", "the newcomer has its turn"
    with engine.store.read() as tx:
        (row,) = [one for one in app_trials.trials(tx) if one.job_id == job.id]
        now = job_placements.placements(tx, [job.id, next_one.id])
    assert not any(one.gives_way for one in now.values())
    assert (row.share, row.quality) == (told["until"], 0.7)
    pool.turn()
    assert asked(engine) == [job.id], "nobody is asked for what has been given already"


def test_nobody_is_asked_to_give_way_who_still_waits_for_a_device(engine: EngineUnderTest) -> None:
    """Two slices, of which the longer has not begun: the newcomer's place is had from the other one."""
    pool = PoolUnderTest(engine.lake)
    pool.device(vcpu=2.0, memory_mb=16_000)
    app(engine, "flowers")
    both: list[Job] = []
    for _ in range(200):
        pool.turn()
        both = pool.waiting()
        able = [one for one in both if pool.keeper.flights[one.id].stops]
        if len(able) == 2 and next(iter(pool.keeper.state.tenants.values())).pulls:
            break
        for job in both[:1]:
            pool.end(job, 0.6, result={"reached": arguments(job).get("until", 1.0)})
    shorter = min(both, key=lambda one: pool.keeper.flights[one.id].trial.reasons.cost)
    pool.begin(shorter)
    app(engine, "birds", seed=7)
    pool.turn()
    assert asked(engine) == [shorter.id]
    pool.turn()
    assert asked(engine) == [shorter.id]


def test_an_app_deleted_while_its_slice_runs_is_not_gone_on_with_by_one_of_its_name(
    engine: EngineUnderTest,
) -> None:
    pool = PoolUnderTest(engine.lake)
    pool.device()
    app(engine, "flowers", n=40)
    app(engine, "birds", seed=7)
    for _ in range(200):
        (job,) = pool.turn()
        if job.spec.resume is not None and job.spec.tags["app"] == "flowers":
            break
        pool.end(job, 0.6, result={"reached": arguments(job).get("until", 1.0)})
    assert job.spec.resume is not None
    pool.begin(job)
    with engine.store.write() as tx:
        delete_app(tx, engine.caller(), "flowers")
    (after,) = pool.turn()
    assert after.spec.tags["app"] == "birds", "its place is as good as free: it is being killed"
    pool.end(job, 0.9, result={"reached": arguments(job)["until"]})  # its report comes late
    assert pool.turn() == []
    app(engine, "flowers", n=40)
    for _ in range(40):
        (now,) = pool.waiting()
        if now.spec.tags["app"] == "flowers":
            break
        pool.end(now, 0.6, result={"reached": arguments(now).get("until", 1.0)})
        pool.turn()
    assert now.spec.tags["app"] == "flowers"
    assert now.spec.resume is None, "the new one begins with nothing of the old"
    with engine.store.read() as tx:
        assert job.id not in {one.job_id for one in app_trials.trials(tx)}
    assert would_decide(pool) == would_decide(PoolUnderTest(engine.lake))


@pytest.mark.parametrize("slower", [[100.0] * 24, [1.0] * 12 + [100.0] * 12], ids=["lies", "slows down"])
def test_a_device_slower_than_it_says_costs_time_and_neither_candidates_nor_turns(
    engine: EngineUnderTest, slower: list[float]
) -> None:
    pool = PoolUnderTest(engine.lake)
    pool.device("honest")
    pool.device("quick", notes={"label speed": "4"})
    app(engine, "flowers", n=40)
    app(engine, "birds", seed=7, n=40)
    served: dict[str, int] = {}
    for factor in slower:
        pool.turn()
        for job in pool.waiting():
            late = factor if job.spec.wants else 1.0
            served[str(job.spec.wants)] = served.get(str(job.spec.wants), 0) + 1
            pool.end(job, 0.7, seconds=late, result={"reached": arguments(job).get("until", 1.0)})
    pool.keeper.turn()
    assert len(served) == 2, "both devices had work all the time"
    with engine.store.read() as tx:
        trials = [one for one in app_trials.trials(tx) if one.ended_at is not None]
    assert all(one.quality == 0.7 for one in trials), "what took long counts like anything else"
    tenants = pool.keeper.state.tenants.values()
    assert all(np.isfinite(tenant.costs(ANY)[tenant.open]).all() for tenant in tenants)
    fresh = PoolUnderTest(engine.lake)
    assert would_decide(pool) == would_decide(fresh), "whoever takes over decides the same"


def test_whoever_is_killed_between_two_slices_trials_go_on_and_the_books_agree(
    engine: EngineUnderTest,
) -> None:
    """Controllers die before, between and after starts and ends, at random: each slice is settled once, goes on from
    the one before, and what was learned of it is what its job told."""
    rng = np.random.default_rng(3)
    pool = PoolUnderTest(engine.lake)
    pool.device(vcpu=2.0, memory_mb=16_000)
    app(engine, "flowers", 0)
    told: dict[str, tuple[float, float]] = {}
    for _ in range(60):
        if rng.random() < 0.5:
            pool.restart()
        pool.turn()
        for job in pool.waiting():
            if rng.random() < 0.7:
                reached, quality = arguments(job).get("until", 1.0), float(rng.uniform(0.3, 0.9))
                pool.end(job, quality, seconds=float(rng.uniform(1.0, 5.0)), result={"reached": reached})
                told[job.id] = (reached, quality)
                if rng.random() < 0.3:
                    pool.restart()
    pool.restart()
    pool.turn()
    with engine.store.read() as tx:
        begun = app_trials.trials(tx)
        past = trial_history.until(tx, 10_000)
        specs = jobs.rows(tx, [one.job_id for one in begun])
    ended = [one for one in begun if one.ended]
    assert len({one.job_id for one in begun}) == len(begun)
    assert {one.job_id: (one.share, one.quality) for one in ended} == told
    assert len(past) == len(ended)
    resumed = 0
    for name in {one.name for one in ended}:
        slices = [one for one in ended if one.name == name]
        shares = [one.share for one in slices]
        assert shares == sorted(set(shares)), (name, shares)
        if goes_on(Candidate.from_json(dict(slices[0].candidate))):
            for before, after in itertools.pairwise(slices):
                assert specs[after.job_id].spec["resume"] == before.model_set
                resumed += 1
    assert resumed > 0
