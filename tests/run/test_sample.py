"""What a tree uses over time."""

from __future__ import annotations

from easel.run.sample import GpuCurve, LoadCurve, Meter


def curve_of(seconds: float, cpus: float) -> list[tuple[str, int, float | str]]:
    """A job that keeps `cpus` busy, looked at every half second as the agent does."""
    curve, meter, found = LoadCurve(), Meter(now_mb=64.0), list[tuple[str, int, float | str]]()
    now = 0.0
    while now < seconds:
        now += max(0.5, now / 1000)
        meter.cpu[1] = cpus * now
        if now >= curve.due:
            found += curve.points(now, meter)
    return found


def test_the_load_is_a_series_of_processors_and_one_of_memory() -> None:
    found = curve_of(10.0, cpus=1.5)
    assert [point for point in found if point[0] == "system/vcpu"] == [
        ("system/vcpu", second, 1.5) for second in range(1, 11)
    ]
    assert {point[2] for point in found if point[0] == "system/memory_mb"} == {64.0}


def test_a_month_is_some_thousand_points() -> None:
    found = curve_of(30 * 86400.0, cpus=1.0)
    steps = [point[1] for point in found if point[0] == "system/vcpu"]
    assert 1500 < len(steps) < 3000
    assert len(set(steps)) == len(steps)


def test_members_that_ended_do_not_count_negatively() -> None:
    curve, meter = LoadCurve(), Meter(cpu={1: 5.0})
    curve.points(1.0, meter)
    meter.cpu = {2: 1.0}
    assert curve.points(2.0, meter)[0] == ("system/vcpu", 2, 0.0)


def gpu_curve(held: float, *samples: tuple[float, ...]) -> list[tuple[str, int, float | str]]:
    """What a job says of its GPUs, asked every five seconds."""
    curve = GpuCurve(held)
    for number, busy in enumerate(samples, 1):
        curve.sample(5.0 * number, busy)
    return curve.points()


def test_gpus_are_idle_while_they_are_used_for_less_than_a_twentieth_of_the_time() -> None:
    assert gpu_curve(1.0, (0.9,), (0.04,), (0.05,)) == [
        ("system/gpu", 15, 0.33),
        ("system/gpu_idle", 15, 5.0),
    ]
    assert gpu_curve(4.0, (0.0, 0.0, 0.0, 1.0))[1] == ("system/gpu_idle", 5, 15.0)
    assert gpu_curve(0.25, (0.0,), (0.0,))[1] == ("system/gpu_idle", 10, 2.5)


def test_time_of_which_the_driver_says_nothing_is_not_idle() -> None:
    assert gpu_curve(1.0, (), ()) == []
    assert gpu_curve(1.0, (), (0.0,), ()) == [("system/gpu", 15, 0.0), ("system/gpu_idle", 15, 5.0)]


def test_each_point_of_gpus_has_a_step_of_its_own() -> None:
    curve = GpuCurve(1.0)
    steps = []
    for seconds in (1.0, 1.2, 1.4):
        curve.sample(seconds, [0.5])
        steps += [point[1] for point in curve.points()]
    assert steps == [1, 1, 2, 2, 3, 3]
    assert curve.points() == []
