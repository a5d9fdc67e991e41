"""One fair share for everybody, played through on a simulated pool."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np
import pytest

from easel.declare.resources import Resources
from easel.ids import JobId, ProjectId, UserId
from easel.records.queue import Line, Owner
from easel.run.queue import choose
from easel.run.share import HALF_LIFE_S, faded, load


@dataclass
class Person:
    owner: Owner
    jobs: list[tuple[float, float]]
    """(submitted at, seconds) of each job, in order."""
    weight: float = 1.0
    project_weight: float = 1.0
    priority: int = 0
    limit: int = 1000
    usage: float = 0.0
    used_at: float = 0.0
    next: int = 0
    active: int = 0
    seconds: float = 0.0
    starts: list[float] = field(default_factory=list)


def person(project: str, user: str, jobs: list[tuple[float, float]], **more: float) -> Person:
    return Person((ProjectId(project), UserId(user)), jobs, **more)  # type: ignore[arg-type]  # free fields


def play(people: list[Person], devices: int, until: float, half_life: float = HALF_LIFE_S) -> None:
    """Whenever a device is free, the queue chooses; usage is charged as jobs end, and in full while they run."""
    ends: list[tuple[float, int, int, float]] = []
    arrivals = sorted({at for one in people for at, _ in one.jobs})
    now, free, number, turn = 0.0, devices, 0, 0
    served = [0] * len(people)
    while now <= until:
        lines = []
        for place, one in enumerate(people):
            first = range(one.next, min(one.next + devices, len(one.jobs)))
            waiting = [JobId(f"{place}:{i}") for i in first if one.jobs[i][0] <= now]
            running = sum(seconds for end, _, who, seconds in ends if who == place and end > now)
            usage = faded(one.usage, now - one.used_at, half_life) + running
            lines.append(
                Line(
                    one.owner,
                    waiting,
                    one.active,
                    one.limit,
                    served[place],
                    usage=usage,
                    weight=one.weight,
                    project_weight=one.project_weight,
                    priority=one.priority,
                    charge=60.0,
                )
            )
        found = choose(lines, free, turn)
        turn += len(found.jobs)
        for place, one in enumerate(people):
            served[place] = found.served.get(one.owner, served[place])
        for job in found.jobs:
            place, i = (int(part) for part in job.split(":"))
            one = people[place]
            one.next, one.active, free, number = i + 1, one.active + 1, free - 1, number + 1
            one.starts.append(now)
            heapq.heappush(ends, (now + one.jobs[i][1], number, place, one.jobs[i][1]))
        coming = [at for at in arrivals if at > now]
        if not ends and not coming:
            return
        now = min([ends[0][0]] * bool(ends) + coming[:1])
        while ends and ends[0][0] <= now:
            _, _, place, seconds = heapq.heappop(ends)
            one = people[place]
            one.usage = faded(one.usage, now - one.used_at, half_life) + seconds
            one.used_at, one.seconds = now, one.seconds + seconds
            one.active, free = one.active - 1, free + 1


@pytest.mark.parametrize("devices", [1, 2, 8])
def test_three_hundred_jobs_do_not_delay_a_newcomer_by_more_than_one_job(devices: int) -> None:
    length = 30.0
    crowd = person("p", "crowd", [(0.0, length)] * 300)
    newcomer = person("p", "new", [(95.0, length)])
    other_project = person("q", "new", [(200.0, length)])
    play([crowd, newcomer, other_project], devices, until=2000.0)
    assert newcomer.starts[0] - 95.0 <= length
    assert other_project.starts[0] - 200.0 <= length


def test_three_hundred_jobs_of_all_lengths_do_not_either() -> None:
    rng = np.random.default_rng(0)
    late = []
    for trial in range(20):
        lengths = rng.lognormal(3.0, 1.0, size=300)
        crowd = person("p", "crowd", [(0.0, float(seconds)) for seconds in lengths])
        newcomer = person("p", "new", [(50.0 + 7.0 * trial, 20.0)])
        play([crowd, newcomer], 4, until=4000.0)
        late.append((newcomer.starts[0] - newcomer.jobs[0][0]) / float(lengths.max()))
    assert max(late) <= 1.0


def test_long_run_shares_are_those_of_the_weights() -> None:
    rng = np.random.default_rng(1)
    weights = (1.0, 2.0, 5.0)
    people = [
        person(f"p{i}", "u", [(0.0, float(s)) for s in rng.lognormal(3.0, 0.8, size=6000)], project_weight=w)
        for i, w in enumerate(weights)
    ]
    play(people, 6, until=40_000.0)
    total = sum(one.seconds for one in people)
    for one, weight in zip(people, weights, strict=True):
        assert one.seconds / total == pytest.approx(weight / sum(weights), rel=0.05)


def test_weights_of_users_hold_within_their_project_whatever_the_other_has() -> None:
    many = [(0.0, 20.0)] * 4000
    heavy, light = person("p", "a", many, weight=3.0), person("p", "b", many)
    alone = person("q", "c", many)
    play([heavy, light, alone], 4, until=20_000.0)
    assert heavy.seconds / light.seconds == pytest.approx(3.0, rel=0.05)
    assert alone.seconds / (heavy.seconds + light.seconds) == pytest.approx(1.0, rel=0.05)


def test_old_usage_is_forgotten_by_half_each_half_life() -> None:
    assert faded(100.0, HALF_LIFE_S, HALF_LIFE_S) == pytest.approx(50.0)
    assert faded(100.0, -5.0, HALF_LIFE_S) == 100.0
    worked = person("p", "a", [(0.0, 100.0)] * 200, usage=50_000.0)
    fresh = person("p", "b", [(0.0, 100.0)] * 200)
    play([worked, fresh], 2, until=8000.0, half_life=1000.0)
    assert worked.starts[0] > 0.0
    late = [one.seconds for one in (worked, fresh)]
    assert late[0] / late[1] > 0.3


def test_a_higher_priority_goes_first_and_a_lower_one_waits() -> None:
    urgent = person("p", "a", [(0.0, 10.0)] * 5, priority=1, usage=1e6)
    usual = person("p", "b", [(0.0, 10.0)] * 5)
    play([urgent, usual], 1, until=1000.0)
    assert max(urgent.starts) < min(usual.starts)


def test_memory_and_gpus_count_as_the_cores_they_keep_from_others() -> None:
    assert load(Resources(1.0, 1024)) == 1.0
    assert load(Resources(1.0, 32 * 1024)) == 8.0
    assert load(Resources(1.0, 1024, 2.0)) == 16.0
