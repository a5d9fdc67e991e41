"""Expected starts against a queue that is then played out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from easel.declare.resources import Resources, Room
from easel.ids import JobId, ProjectId, UserId
from easel.records.queue import Line
from easel.run.forecast import (
    ForecastDevice,
    QueueNow,
    RunningJob,
    Spread,
    WaitingJob,
    expected_start,
    expected_starts,
)

ME, YOU = (ProjectId("p"), UserId("me")), (ProjectId("p"), UserId("you"))
ONE = Resources(1.0, 1024)


def device(
    name: str = "d", cpus: float = 2.0, memory: int = 8192, gpus: int = 0, **labels: str
) -> ForecastDevice:
    return ForecastDevice(name, Room(cpus, memory, (1.0,) * gpus), labels)


def waiting(
    name: str, spread: Spread, owner: tuple[ProjectId, UserId] = YOU, asked: Resources = ONE, **more: object
) -> WaitingJob:
    return WaitingJob(JobId(name), owner, asked, spread, **more)  # type: ignore[arg-type]  # free fields


def queue(
    jobs: list[WaitingJob],
    devices: list[ForecastDevice],
    running: list[RunningJob] | None = None,
    **line: float,
) -> QueueNow:
    lines = {owner: Line(owner, (), 0, 100, **line) for owner in (ME, YOU)}  # type: ignore[arg-type]
    return QueueNow(devices, running or [], jobs, lines)


def test_twenty_jobs_of_twelve_seconds_are_not_over_in_thirty() -> None:
    jobs = [waiting(f"j{i}", Spread(12.0, 0.05), ME) for i in range(20)]
    mine = expected_start(
        queue(jobs, [device()]), waiting("new", Spread(12.0, 0.05), ME), np.random.default_rng(0)
    )
    assert mine.start_at(0.5) == pytest.approx(120.0, rel=0.05)
    assert mine.end_at(0.95) > 125.0


def test_somebody_elses_queue_delays_a_newcomer_by_one_job_only() -> None:
    jobs = [waiting(f"j{i}", Spread(12.0)) for i in range(20)]
    running = [RunningJob(YOU, "d", ONE, Spread(12.0), 4.0)] * 2
    now = queue(jobs, [device()], running)
    lines = {**now.lines, YOU: Line(YOU, (), 2, 100, usage=500.0)}
    now = QueueNow(now.devices, now.running, now.waiting, lines)
    mine = expected_start(now, waiting("new", Spread(12.0), ME), np.random.default_rng(0))
    assert mine.start_at(0.9) == pytest.approx(8.0)


def test_memory_labels_and_gpus_are_those_of_single_devices() -> None:
    pool = [device("a", memory=2048), device("b", memory=4096, gpus=1, site="north")]
    now = queue([], pool, [RunningJob(YOU, "b", Resources(1.0, 3000), Spread(50.0), 10.0)])
    rng = np.random.default_rng(0)

    def start(**more: object) -> float:
        return expected_start(now, waiting("new", Spread(1.0), **more), rng).start_at(0.5)  # type: ignore[arg-type]

    assert start(asked=Resources(1.0, 1024)) == 0.0
    # both have two cores free, and together the memory, but neither has it alone
    assert start(asked=Resources(1.0, 3000)) == pytest.approx(40.0)
    assert start(wants={"site": "north"}, asked=Resources(1.0, 2000)) == pytest.approx(40.0)
    assert start(asked=Resources(1.0, 512, 1.0)) == 0.0
    assert start(asked=Resources(1.0, 512, 2.0)) == np.inf
    assert start(workers=3) == np.inf


def test_a_job_that_is_overdue_is_expected_to_end_later_still() -> None:
    spread = Spread(10.0, 0.3)
    rng = np.random.default_rng(0)
    left = np.mean([spread.beyond(20.0, float(u)) - 20.0 for u in rng.uniform(size=500)])
    assert 0.0 < left < 20.0
    assert spread.beyond(1e6, 0.5) > 1e6


def test_a_limit_on_active_jobs_keeps_a_queue_waiting_on_a_free_pool() -> None:
    jobs = [waiting(f"j{i}", Spread(10.0), ME) for i in range(4)]
    lines = {ME: Line(ME, (), 0, 1)}
    found = expected_starts(QueueNow([device(cpus=8.0)], [], jobs, lines), np.random.default_rng(0))
    assert [found[JobId(f"j{i}")].start_at(0.5) for i in range(4)] == pytest.approx([0.0, 10.0, 20.0, 30.0])


def test_ends_are_kept_as_often_as_promised() -> None:
    rng = np.random.default_rng(7)
    levels = (0.8, 0.9, 0.95)
    kept: dict[float, list[float]] = {level: [] for level in levels}
    for _ in range(40):
        count = int(rng.integers(0, 12))
        spreads = [
            Spread(float(rng.lognormal(2.5, 1.0)), float(rng.uniform(0.05, 0.6))) for _ in range(count)
        ]
        jobs = [waiting(f"j{i}", spread, ME if i % 2 else YOU) for i, spread in enumerate(spreads)]
        new = waiting("new", Spread(20.0, 0.3), ME)
        now = queue([*jobs, new], [device(cpus=float(rng.integers(1, 4)))])
        promised = expected_starts(now, rng, plays=100)[new.job]
        truth = expected_starts(now, rng, plays=40)[new.job].end
        for level in levels:
            kept[level].append(float((truth <= promised.end_at(level)).mean()))
    for level in levels:
        assert np.mean(kept[level]) == pytest.approx(level, abs=0.03)


def test_medians_of_starts_are_near_the_truth_for_most_jobs() -> None:
    rng = np.random.default_rng(3)
    near = []
    for _ in range(12):
        jobs = [
            waiting(f"j{i}", Spread(float(rng.lognormal(3.0, 0.7)), 0.3), ME if rng.uniform() < 0.5 else YOU)
            for i in range(30)
        ]
        now = queue(jobs, [device(cpus=3.0)])
        expected = expected_starts(now, rng, plays=60)
        truth = expected_starts(now, rng, plays=1)
        for job, found in expected.items():
            start = float(truth[job].start[0])
            if start > 0.0:
                near.append(abs(found.start_at(0.5) - start) <= 0.3 * start)
    assert np.mean(near) >= 0.8


def test_an_empty_pool_makes_nobody_wait_and_large_jobs_wait_for_enough_cores() -> None:
    rng = np.random.default_rng(0)
    assert expected_start(queue([], [device()]), waiting("new", Spread(1.0)), rng).start_at(0.9) == 0.0
    held = [RunningJob(YOU, "d", ONE, Spread(100.0)), RunningJob(YOU, "d", ONE, Spread(30.0))]
    now = queue([], [device()], held)
    assert expected_start(now, waiting("new", Spread(1.0)), rng).start_at(0.5) == pytest.approx(30.0)
    wide = waiting("new", Spread(1.0), asked=Resources(2.0, 1024))
    assert expected_start(now, wide, rng).start_at(0.5) == pytest.approx(100.0)


def test_a_device_that_is_kept_for_another_project_starts_nobody_else() -> None:
    def start(kept_for: str) -> float:
        kept = ForecastDevice("d", Room(2.0, 8192), kept_for=kept_for)
        return expected_start(
            queue([], [kept]), waiting("new", Spread(1.0)), np.random.default_rng(0)
        ).start_at(0.5)

    assert start("p") == 0.0
    assert start("q") == np.inf


def test_what_is_kept_for_apps_is_not_promised_to_jobs() -> None:
    """An app whose trial ends starts the next: of two cores the jobs have one."""
    jobs = [waiting(f"j{i}", Spread(12.0), ME) for i in range(3)]
    running = [RunningJob(YOU, "d", ONE, Spread(10.0), 0.0, trial=True)]
    rng = np.random.default_rng(0)
    now = queue(jobs, [device()], running)
    shared = expected_starts(now, rng)
    kept = expected_starts(replace(now, for_apps=0.5), rng)
    assert [shared[job.job].start_at(0.5) for job in jobs] == pytest.approx([0.0, 10.0, 12.0])
    assert [kept[job.job].start_at(0.5) for job in jobs] == pytest.approx([0.0, 12.0, 24.0])


def test_a_trial_that_waits_goes_before_a_better_claim_as_far_as_is_kept_for_apps() -> None:
    jobs = [waiting("mine", Spread(12.0), ME), waiting("trial", Spread(5.0), trial=True)]
    now = queue(jobs, [device(cpus=1.0)])
    lines = {**now.lines, YOU: Line(YOU, (), 0, 100, usage=10_000.0)}
    now = replace(now, lines=lines)
    rng = np.random.default_rng(0)
    assert expected_starts(now, rng)[JobId("trial")].start_at(0.5) == pytest.approx(12.0)
    kept = expected_starts(replace(now, for_apps=1.0), rng)
    assert kept[JobId("trial")].start_at(0.5) == 0.0
    assert kept[JobId("mine")].start_at(0.5) == np.inf, "apps go on for as long as they have something to try"


def test_what_runs_on_a_fast_device_is_sooner_over_and_what_ran_there_already_too() -> None:
    fast, slow = replace(device("fast", 1.0), speed=4.0), device("slow", 1.0)
    rng = np.random.default_rng(0)
    found = expected_starts(
        queue([waiting("a", Spread(12.0)), waiting("b", Spread(12.0))], [fast, slow]), rng
    )
    assert found[JobId("a")].end_at(0.5) == pytest.approx(3.0)
    assert found[JobId("b")].end_at(0.5) == pytest.approx(12.0)
    half_done = queue([waiting("a", Spread(12.0))], [fast], [RunningJob(YOU, "fast", ONE, Spread(12.0), 1.5)])
    (next_one,) = expected_starts(half_done, rng).values()
    assert next_one.start_at(0.5) == pytest.approx(1.5)
    pair = waiting("pair", Spread(12.0), workers=2)
    (both,) = expected_starts(queue([pair], [fast, slow]), rng).values()
    assert both.end_at(0.5) == pytest.approx(12.0), "the fast one waits for the slow one"
