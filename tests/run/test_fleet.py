"""How many workers an engine should have, and who gets what of those that ask."""

from __future__ import annotations

from easel.declare.resources import Resources, Room
from easel.records.worker import Placement
from easel.run.executors.engine import PlacementState
from easel.run.fleet import Ask, Fleet, fleet_of, plan

SMALL, LARGE = Resources(1.0, 512), Resources(4.0, 4096)
MACHINES = [Room(4.0, 8192), Room(4.0, 8192)]


def fleet(*placements: Placement, up: tuple[str, ...] = (), idle: tuple[str, ...] = ()) -> Fleet:
    standings = {
        each.name: PlacementState.UP if each.name in up else PlacementState.WAITING for each in placements
    }
    return Fleet(placements, standings, frozenset(idle))


def test_each_thing_that_waits_gets_a_worker_of_its_size_as_far_as_the_cluster_goes() -> None:
    made = plan([Ask(SMALL)] * 20 + [Ask(LARGE)] * 5, fleet(), MACHINES, most=64)
    assert [each.resources for each in made.place] == [SMALL] * 8 + [LARGE] * 2
    assert made.cancel == ()


def test_workers_that_come_up_or_are_idle_count_first() -> None:
    there = fleet(Placement("a", SMALL), Placement("b", SMALL), up=("b",), idle=("b",))
    assert plan([Ask(SMALL)] * 2, there, MACHINES, 64).place == ()
    assert len(plan([Ask(SMALL)] * 3, there, MACHINES, 64).place) == 1


def test_what_waits_in_the_engines_queue_for_nothing_is_cancelled_and_what_runs_is_not() -> None:
    there = fleet(Placement("a", SMALL), Placement("b", SMALL), up=("b",), idle=("b",))
    assert plan([], there, MACHINES, 64).cancel == ("a",)


def test_one_that_its_engine_put_back_into_its_queue_is_cancelled_and_asked_for_anew() -> None:
    back = fleet(Placement("a", SMALL))
    again = Fleet(back.placements, back.standings, frozenset(), ended=frozenset({"a"}))
    made = plan([Ask(SMALL)], again, MACHINES, 64)
    assert (made.cancel, len(made.place)) == (("a",), 1)
    # One that is up and whose worker has left ends by itself, and is counted on no more.
    ending = Fleet(back.placements, {"a": PlacementState.UP}, frozenset(), ended=frozenset({"a"}))
    assert plan([Ask(SMALL)], ending, MACHINES, 64) == plan([Ask(SMALL)], fleet(), MACHINES, 64)


def test_workers_side_by_side_are_there_with_the_last_and_have_something_to_do_with_any() -> None:
    pair = Placement("a", SMALL, count=2)
    waits = {"a": PlacementState.WAITING}

    def now(present: set[str], left: set[str], busy: set[str]) -> Fleet:
        return fleet_of([pair], waits, present, left, busy)

    coming = now(set(), set(), set())
    assert (coming.standings["a"], set(coming.idle), coming.ended) == (
        PlacementState.WAITING,
        {"a"},
        frozenset(),
    )
    # The first has left, having had nothing to do; a job runs on the second: it is neither free nor surplus.
    second = now({"a-1"}, {"a"}, {"a-1"})
    assert (second.standings["a"], second.idle, second.ended) == (PlacementState.UP, frozenset(), frozenset())
    assert plan([], second, MACHINES, 64).cancel == ()
    assert len(plan([Ask(SMALL, workers=2)], second, MACHINES, 64).place) == 1
    over = now(set(), {"a", "a-1"}, set())
    assert plan([], over, MACHINES, 64).cancel == ("a",)


def test_a_limit_on_placements_holds() -> None:
    assert len(plan([Ask(SMALL)] * 20, fleet(Placement("a", LARGE), up=("a",)), MACHINES, most=3).place) == 2
