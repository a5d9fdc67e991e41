"""Which waiting attempt goes to which worker that asks."""

from __future__ import annotations

from easel.declare.resources import Resources, Room
from easel.records.worker import AttemptOffer, Puller
from easel.run.leasing import give
from easel.run.placement import PATIENCE_S

SMALL, LARGE = Resources(1.0, 512), Resources(4.0, 4096)


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


def test_a_worker_without_room_is_given_nothing_and_one_is_filled_before_the_next() -> None:
    full, first, second = (
        Puller(name, Room(cores, 4096)) for name, cores in (("full", 0.4), ("x", 2.0), ("y", 2.0))
    )
    assert give([offer("a"), offer("b"), offer("c")], [full, first, second]) == {"a": "x", "b": "x", "c": "y"}
    assert give([offer("a")], [full]) == {}
    assert give([offer("a"), offer("b")], []) == {}


def test_what_is_given_is_taken_from_a_workers_memory_and_gpus_too() -> None:
    one = Puller("x", Room(8.0, 1024, (1.0,)))
    asked = Resources(1.0, 512, 0.5)
    assert give([offer("a", asked), offer("b", asked), offer("c", asked)], [one]) == {"a": "x", "b": "x"}
    whole = Resources(1.0, 16, 1.0)
    assert give([offer("a", whole), offer("b", whole)], [one]) == {"a": "x"}


def test_a_gang_that_does_not_fit_takes_no_room_from_those_behind_it() -> None:
    gang = [offer(f"g-{rank}", gang="g", rank=rank, size=2) for rank in range(2)]
    assert give([*gang, offer("a")], [Puller("x", Room(1.0, 1024))]) == {"a": "x"}


def test_members_of_a_gang_share_a_worker_where_there_are_too_few() -> None:
    gang = [offer(f"g-{rank}", gang="g", rank=rank, size=3) for rank in range(3)]
    workers = [Puller("x", Room(2.0, 2048)), Puller("y", Room(1.0, 1024))]
    assert give(gang, workers) == {"g-0": "x", "g-1": "y", "g-2": "x"}


def test_a_gang_whose_members_have_not_all_come_waits() -> None:
    assert give([offer("g-0", gang="g", size=2)], [Puller("x", Room(4.0, 4096))]) == {}


def test_patience_holds_back_only_workers_that_the_large_one_waits_for() -> None:
    waiting = [offer("large", LARGE, waited_s=PATIENCE_S + 1, wants={"gpu": "A100"}), offer("small")]
    suits, other = (
        Puller("suits", Room(2.0, 4096), {"gpu": "A100"}),
        Puller("other", Room(2.0, 4096), {"gpu": "T4"}),
    )
    assert give(waiting, [suits, other]) == {"small": "other"}
    assert give(waiting, [other]) == {"small": "other"}, "nobody there could ever take the large one"
    exactly = [offer("large", LARGE, waited_s=PATIENCE_S), offer("small")]
    assert give(exactly, [Puller("x", Room(2.0, 4096))]) == {"small": "x"}


def test_a_time_limit_may_fill_what_a_worker_has_left_and_none_fits_everywhere() -> None:
    ending = Puller("x", Room(4.0, 4096), remaining_s=60.0)
    assert give([offer("a", time_limit_s=60.0), offer("b")], [ending]) == {"a": "x", "b": "x"}
    assert give([offer("a", time_limit_s=60.5)], [ending]) == {}


def test_a_short_trial_uses_room_before_it_is_taken_ahead() -> None:
    worker = Puller("x", Room(1.0, 1024), ahead=1)
    trials = [offer(f"t{i}", short=True) for i in range(3)]
    assert give(trials, [worker]) == {"t0": "x", "t1": "x"}
