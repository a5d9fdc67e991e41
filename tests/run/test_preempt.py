"""Who is stopped for whom."""

from __future__ import annotations

from easel.declare.resources import Resources, Room
from easel.ids import ProjectId, UserId
from easel.records.queue import Line, Owner
from easel.run.preempt import Claimant, ContendedDevice, PreemptibleJob, preempted

ANA, BEN = (ProjectId("p"), UserId("ana")), (ProjectId("q"), UserId("ben"))
ONE, TWO = Resources(1.0, 512), Resources(2.0, 512)
HERE = [ContendedDevice("here", Room(2.0, 4096))]


def lines(priority: int = 0, **usage: float) -> dict[Owner, Line]:
    return {
        ANA: Line(ANA, (), 0, 8, usage=usage.get("ana", 0.0), priority=priority),
        BEN: Line(BEN, (), 0, 8, usage=usage.get("ben", 0.0)),
    }


def holder(name: str, ran_s: float, *, may: bool = True, owner: Owner = BEN, **more: bool) -> PreemptibleJob:
    return PreemptibleJob(name, owner, "here", ONE, ran_s, may, **more)


def test_the_last_begun_of_who_used_more_gives_way_and_no_more_than_are_needed() -> None:
    running = [holder("old", 100.0), holder("new", 3.0)]
    assert preempted([Claimant(ANA, ONE, 10.0)], running, HERE, lines(ben=500.0)) == ["new"]
    assert preempted([Claimant(ANA, TWO, 10.0)], running, HERE, lines(ben=500.0)) == ["new", "old"]


def test_who_did_not_say_so_is_never_stopped() -> None:
    running = [holder("old", 100.0, may=False), holder("new", 3.0, may=False)]
    assert preempted([Claimant(ANA, ONE, 10.0)], running, HERE, lines(priority=10, ben=500.0)) == []
    # and one alone does not help who needs two cores
    running = [holder("old", 100.0, may=False), holder("new", 3.0)]
    assert preempted([Claimant(ANA, TWO, 10.0)], running, HERE, lines(ben=500.0)) == []


def test_an_equal_or_worse_claim_stops_nobody_and_neither_does_the_owner_himself() -> None:
    running = [holder("old", 100.0), holder("new", 3.0)]
    assert preempted([Claimant(ANA, ONE, 10.0)], running, HERE, lines(ana=500.0, ben=500.0)) == []
    assert preempted([Claimant(BEN, ONE, 10.0)], running, HERE, lines(ben=500.0)) == []
    assert preempted([Claimant(ANA, ONE, 10.0)], running, HERE, lines(priority=1, ana=900.0)) == ["new"]


def test_nobody_is_stopped_for_who_fits_has_just_come_or_is_being_served() -> None:
    free = [holder("new", 3.0)]
    assert preempted([Claimant(ANA, ONE, 10.0)], free, HERE, lines(ben=500.0)) == []
    full = [holder("old", 100.0), holder("new", 3.0)]
    assert preempted([Claimant(ANA, ONE, 1.0)], full, HERE, lines(ben=500.0)) == []
    leaving = [holder("old", 100.0, leaving=True), holder("new", 3.0)]
    assert preempted([Claimant(ANA, ONE, 10.0)], leaving, HERE, lines(ben=500.0)) == []
    elsewhere = [Claimant(ANA, ONE, 10.0, {"site": "north"})]
    assert preempted(elsewhere, full, HERE, lines(ben=500.0)) == []


def test_nobody_is_stopped_on_a_device_that_is_kept_for_another_project() -> None:
    running = [holder("old", 100.0), holder("new", 3.0)]
    for kept, stopped in (("q", []), ("p", ["new"])):
        reserved = [ContendedDevice("here", Room(2.0, 4096), kept_for=kept)]
        assert preempted([Claimant(ANA, ONE, 10.0)], running, reserved, lines(ben=500.0)) == stopped
