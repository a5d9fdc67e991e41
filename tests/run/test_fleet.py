"""How many workers an engine should have, and who gets what of those that ask."""

from __future__ import annotations

from easel.declare.resources import Resources, Room
from easel.records.worker import AttemptOffer, Placement, Puller
from easel.run.executors.engine import PlacementState
from easel.run.fleet import Ask, Fleet, fleet_of, plan
from easel.run.leasing import give

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


def offer(key: str, asked: Resources = SMALL, **more: object) -> AttemptOffer:
    fields = {"gang": key, "rank": 0, "size": 1, "wants": {}, "waited_s": 0.0, **more}
    return AttemptOffer(key=key, resources=asked, **fields)  # type: ignore[arg-type]


def test_work_goes_out_in_order_to_whom_it_suits_and_the_cheapest_first() -> None:
    dear = Puller("dear", Room(2.0, 2048), {"price_per_hour": "3", "gpu": "A100"})
    cheap = Puller("cheap", Room(1.0, 1024), {"price_per_hour": "0.1"})
    offers = [offer("a"), offer("b", wants={"gpu": "A100"}), offer("c"), offer("d")]
    assert give(offers, [dear, cheap]) == {"a": "cheap", "b": "dear", "c": "dear"}


def test_a_gang_goes_out_whole_or_not_at_all_and_is_spread() -> None:
    members = [offer(f"g-{rank}", gang="g", rank=rank, size=3) for rank in range(3)]
    two = [Puller("x", Room(1.0, 1024)), Puller("y", Room(1.0, 1024))]
    assert give(members, two) == {}
    assert give(members, [*two, Puller("z", Room(4.0, 4096))]) == {"g-0": "x", "g-1": "y", "g-2": "z"}


def test_nothing_longer_than_a_worker_lasts_is_given_to_it() -> None:
    short = Puller("short", Room(4.0, 4096), remaining_s=60.0)
    assert give([offer("long", time_limit_s=600.0), offer("brief", time_limit_s=30.0)], [short]) == {
        "brief": "short"
    }


def test_after_a_minute_nobody_passes_a_large_one_any_more() -> None:
    half = Puller("x", Room(2.0, 4096))
    waiting = [offer("large", LARGE, waited_s=61.0), offer("small")]
    assert give(waiting, [half]) == {}
    assert give([offer("large", LARGE, waited_s=1.0), offer("small")], [half]) == {"small": "x"}


def test_short_trials_are_taken_ahead_of_room_and_nothing_else_is() -> None:
    full = Puller("x", Room(0.0, 0), ahead=2)
    offers = [offer("command"), *(offer(f"t{i}", short=True) for i in range(3))]
    assert give(offers, [full]) == {"t0": "x", "t1": "x"}
