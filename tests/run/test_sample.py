"""What a tree uses over time."""

from __future__ import annotations

from easel.run.sample import LoadCurve, Meter


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
