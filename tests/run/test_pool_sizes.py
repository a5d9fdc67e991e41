"""Jobs of the past on pools of other sizes, by hand-made histories whose answers are known."""

from __future__ import annotations

from easel.declare.resources import Resources, Room
from easel.ids import ProjectId, UserId
from easel.run.forecast import ForecastDevice
from easel.run.pool_sizes import PastJob, PoolSize, Waiting, larger, recommended, unit_of, waits

ANA, BOB = (ProjectId("astro"), UserId("ana")), (ProjectId("bio"), UserId("bob"))
ONE = Resources(1.0, 1000)
MACHINE = ForecastDevice("one", Room(1.0, 1000))


def burst(count: int, seconds: float, asked: Resources = ONE, at: float = 0.0) -> list[PastJob]:
    return [PastJob(ANA, at, seconds, asked) for _ in range(count)]


def test_jobs_wait_for_those_before_them_and_less_on_a_larger_pool() -> None:
    found = waits(burst(10, 60.0), [MACHINE])
    assert (found.mean_s, found.most_s) == (270.0, 540.0)  # 0, 60, …, 540
    more = waits(burst(10, 60.0), larger([MACHINE], MACHINE.capacity, 1))
    assert (more.mean_s, more.most_s) == (120.0, 240.0)


def test_a_job_that_comes_when_nothing_runs_does_not_wait() -> None:
    assert waits([*burst(1, 60.0), *burst(1, 60.0, at=100.0)], [MACHINE]).most_s == 0.0
    assert waits([*burst(1, 60.0), *burst(1, 60.0, at=50.0)], [MACHINE]).most_s == 10.0


def test_trials_are_load_but_do_not_count_as_waiting() -> None:
    trial = PastJob(BOB, 0.0, 100.0, ONE, follows=True)
    found = waits([trial, *burst(1, 10.0, at=1.0)], [MACHINE])
    assert (found.mean_s, found.never) == (99.0, 0)


def test_what_fits_nowhere_is_counted() -> None:
    jobs = burst(2, 10.0, Resources(1.0, 1000, 2.0))
    assert waits(jobs, [MACHINE]).never == 2
    gpu = Room(1.0, 1000, (1.0,))
    assert waits(jobs, larger([MACHINE], gpu, 2)).never == 0


def test_one_more_is_a_gpu_with_its_part_of_a_machine_where_jobs_use_gpus() -> None:
    box = ForecastDevice("box", Room(16.0, 64_000, (1.0,) * 4))
    assert unit_of([box, MACHINE], burst(1, 1.0, Resources(1.0, 100, 1.0))) == Room(4.0, 16_000, (1.0,))
    assert unit_of([box, MACHINE, MACHINE], burst(1, 1.0)) == MACHINE.capacity


def size(more: int, most_s: float, to_best_s: float | None = None, never: int = 0) -> PoolSize:
    return PoolSize(more, Waiting(most_s / 2, most_s, never), to_best_s, 100.0 * more)


def test_the_smallest_pool_is_recommended_that_no_larger_one_beats_by_enough() -> None:
    assert recommended([size(0, 14_400), size(1, 7_000), size(2, 2_400), size(4, 2_200)]).more == 2
    assert recommended([size(0, 30), size(1, 10), size(2, 1)]).more == 0, "nobody minds half a minute"
    assert recommended([size(0, 0, 100.0), size(1, 0, 60.0), size(2, 0, 58.0)]).more == 1
    assert recommended([size(0, 0, never=3), size(1, 0)]).more == 1
