"""Resources, and who starts on a device."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from easel.declare.resources import Resources, Room
from easel.errors import InvalidInput
from easel.run.placement import PATIENCE_S, WaitingAttempt, could_hold, place

asked = st.builds(
    Resources,
    st.sampled_from([0.5, 1.0, 2.0, 4.0]),
    st.integers(16, 4096),
    st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0]),
)


@pytest.mark.parametrize(
    "wrong",
    [
        {"vcpu": 0},
        {"vcpu": 0.3},
        {"vcpu": float("nan")},
        {"vcpu": float("inf")},
        {"vcpu": -1},
        {"memory_mb": 0},
        {"gpus": 1.5},
        {"gpus": -1},
        {"gpus": float("nan")},
    ],
)
def test_what_no_machine_can_give_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        Resources(**wrong)  # type: ignore[arg-type]


@given(st.lists(st.tuples(asked, st.floats(0, 100)), max_size=12))
def test_a_device_never_gives_more_than_it_has_and_gets_all_back(
    wanted: list[tuple[Resources, float]],
) -> None:
    whole = Room(4.0, 8192, (1.0, 1.0))
    waiting = [WaitingAttempt(str(i), each, waited) for i, (each, waited) in enumerate(wanted)]
    room = whole
    placed = place(waiting, whole)
    for each in placed:
        room = room.less(wanted[int(each.key)][0], each.gpus)
    assert room.vcpu >= 0
    assert room.memory_mb >= 0
    assert all(free >= -1e-9 for free in room.gpus)
    for each in placed:
        room = room.plus(wanted[int(each.key)][0], each.gpus)
    assert room == whole


def test_small_ones_pass_a_large_one_but_not_for_ever() -> None:
    room = Room(1.0, 4096)
    large, small = Resources(2.0, 512), Resources(0.5, 512)
    assert [
        p.key for p in place([WaitingAttempt("l", large, 1.0), WaitingAttempt("s", small, 0.0)], room)
    ] == ["s"]
    assert place([WaitingAttempt("l", large, PATIENCE_S + 1), WaitingAttempt("s", small, 0.0)], room) == []


def test_what_cannot_fit_beside_a_session_holds_nobody_back() -> None:
    large, small = Resources(2.0, 512), Resources(0.5, 512)
    waiting = [WaitingAttempt("l", large, PATIENCE_S + 1), WaitingAttempt("s", small, 0.0)]
    free, beside_a_session, whole = Room(1.0, 4096), Room(1.0, 4096), Room(2.0, 4096)
    assert [p.key for p in place(waiting, free, beside_a_session)] == ["s"]
    assert place(waiting, free, whole) == []  # what runs will end: the device drains for the large one
    assert [p.key for p in place(waiting, whole, whole)] == ["l"]


def test_a_large_one_is_passed_until_its_patience_is_over_and_the_last_half_core_is_given() -> None:
    large, small = Resources(2.0, 512), Resources(0.5, 512)
    waiting = [WaitingAttempt("l", large, PATIENCE_S), WaitingAttempt("s", small, 0.0)]
    assert [placed.key for placed in place(waiting, Room(0.5, 4096))] == ["s"]


def test_enough_devices_of_the_size_and_the_labels_could_hold_a_job() -> None:
    lab, cloud = {"site": "lab", "disk": "ssd"}, {"site": "cloud"}
    rooms = [(Room(2.0, 4096), lab), (Room(2.0, 4096), cloud), (Room(1.0, 4096), lab)]
    asked = Resources(2.0, 512)
    assert could_hold(rooms, asked, {}, 2)
    assert not could_hold(rooms, asked, {}, 3)
    assert could_hold(rooms, asked, {"site": "lab"}, 1)
    assert not could_hold(rooms, asked, {"site": "lab"}, 2)
    assert could_hold(rooms, asked, {"site": "lab", "disk": "ssd"}, 1)
    assert not could_hold(rooms, asked, {"site": "cloud", "disk": "ssd"}, 1)
    assert could_hold([], asked, {}, 0)


def test_shares_of_a_gpu_fill_one_card_before_they_touch_another() -> None:
    room = Room(8.0, 8192, (1.0, 1.0))
    half = Resources(0.5, 64, 0.5)
    placed = place([WaitingAttempt(str(i), half, 0.0) for i in range(3)], room)
    assert [p.gpus for p in placed] == [(0,), (0,), (1,)]


def test_whole_gpus_are_not_shared() -> None:
    room = Room(8.0, 8192, (0.5, 1.0, 1.0))
    assert room.choose_gpus(2.0) == (1, 2)
    assert room.choose_gpus(3.0) is None
