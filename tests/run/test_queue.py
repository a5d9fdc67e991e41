"""The choice among queues."""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given

from easel.ids import JobId, ProjectId, UserId
from easel.records.queue import Line, Owner
from easel.run.queue import choose, kept_room, launch_room, may_begin, newcomer_room, without
from easel.run.share import Shares


def owner(name: str) -> Owner:
    return ProjectId("p"), UserId(name)


def line(
    name: str, count: int, active: int = 0, limit: int = 4, served: int = 0, paused: bool = False
) -> Line:
    return Line(owner(name), [JobId(f"{name}{i}") for i in range(count)], active, limit, served, paused)


def test_each_queue_is_first_in_first_out() -> None:
    assert choose([line("a", 3)], 10, 0).jobs == ("a0", "a1", "a2")


def test_a_user_never_has_more_than_the_limit_launching_or_running() -> None:
    assert choose([line("a", 9, active=3, limit=4)], 10, 0).jobs == ("a0",)
    assert choose([line("a", 9, active=4, limit=4)], 10, 0).jobs == ()


def test_a_newcomer_is_served_before_somebody_with_a_thousand_jobs() -> None:
    assert choose([line("a", 1000, active=2), line("b", 1)], 1, 0).jobs == ("b0",)


def test_turns_are_taken_among_equals_and_remembered() -> None:
    first = choose([line("a", 5), line("b", 5)], 1, 0)
    assert first.jobs == ("a0",)
    again = choose([line("a", 5, served=first.served[owner("a")]), line("b", 5)], 1, 1)
    assert again.jobs == ("b0",)


def test_a_paused_queue_waits() -> None:
    assert choose([line("a", 5, paused=True), line("b", 1)], 10, 0).jobs == ("b0",)


def test_there_is_no_choice_without_room() -> None:
    assert choose([line("a", 5)], 0, 0).jobs == ()


@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.integers(0, 5), st.integers(0, 5), st.booleans()),
        min_size=1,
        max_size=6,
    ),
    st.integers(0, 12),
)
def test_limits_hold_order_holds_and_no_room_is_wasted(
    shapes: list[tuple[int, int, int, bool]], room: int
) -> None:
    lines = [
        line(f"u{i}-", n, active, limit, 0, paused) for i, (n, active, limit, paused) in enumerate(shapes)
    ]
    chosen = choose(lines, room, 0).jobs
    for each in lines:
        mine = [job for job in chosen if job in each.waiting]
        assert mine == list(each.waiting[: len(mine)])
        assert len(mine) <= each.room
    assert len(chosen) == min(room, sum(min(len(each.waiting), each.room) for each in lines))


@given(st.lists(st.integers(1, 30), min_size=2, max_size=5))
def test_equal_users_with_enough_waiting_get_equal_shares(counts: list[int]) -> None:
    least = min(counts)
    lines = [line(f"u{i}-", n, limit=100) for i, n in enumerate(counts)]
    chosen = choose(lines, least * len(counts), 0).jobs
    shares = [sum(job.startswith(f"u{i}-") for job in chosen) for i in range(len(counts))]
    assert max(shares) - min(shares) <= 0 or sum(shares) < least * len(counts)


@pytest.mark.parametrize(
    ("buffer", "launching", "cores", "busy", "typical_s", "room"),
    [
        (8, 3, 0.0, 0.0, 5.0, 5),  # nothing is known of the devices
        (8, 3, 4.0, 0.0, 0.0, 5),  # nothing is known of the jobs
        (8, 9, 0.0, 0.0, 0.0, 0),
        (8, 0, 4.0, 1.5, 100.0, 3),  # free cores, rounded up
        (8, 0, 4.0, 6.0, 100.0, 0),  # more is busy than there is
        (8, 1, 4.0, 4.0, 2.0, 1),  # one second's work of four cores: two jobs of two seconds
        (8, 0, 4.0, 4.0, 0.1, 8),  # never more than the buffer
        (8, 5, 4.0, 2.0, 100.0, 0),
    ],
)
def test_as_many_leave_the_queue_as_find_room_and_a_second_of_work_beside(
    buffer: int, launching: int, cores: float, busy: float, typical_s: float, room: int
) -> None:
    assert launch_room(buffer, launching, cores, busy, typical_s) == room


@pytest.mark.parametrize(
    ("launching", "busy", "typical_s", "room"),
    [
        (4, 2.0, 0.5, 2),  # a second's work waits on both cores: one newcomer more for each
        (6, 2.0, 0.5, 0),
        (4, 0.0, 0.5, 2),
        (0, 2.0, 30.0, 0),  # nothing waits on the devices: the next free core is the newcomer's
        (0, 2.0, 0.0, 0),
    ],
)
def test_beside_a_second_of_work_one_newcomer_for_each_core_is_let_through(
    launching: int, busy: float, typical_s: float, room: int
) -> None:
    assert newcomer_room(256, launching, 2.0, busy, typical_s) == room


def test_where_there_is_no_room_left_only_who_has_nothing_active_is_let_through_and_goes_first() -> None:
    crowd, new, other = line("a", 5, active=2), line("b", 2), line("c", 1)
    chosen = choose([crowd, new, other], 0, 0, beyond=3)
    assert chosen.jobs == ("b0", "c0")
    assert chosen.first == {"b0", "c0"}
    assert choose([crowd], 2, 0, beyond=2).first == frozenset()


def test_who_has_used_more_than_those_who_run_is_no_newcomer_between_two_of_its_jobs() -> None:
    crowd, again = replace(line("a", 5, active=2), usage=10.0), replace(line("b", 2), usage=11.0)
    assert choose([crowd, again], 0, 0, beyond=2).jobs == ()
    assert choose([crowd, again], 1, 0).first == frozenset()
    assert choose([crowd, replace(again, weight=2.0)], 0, 0, beyond=2).jobs == ("b0",)


def test_short_jobs_of_several_projects_share_the_devices_by_their_weights() -> None:
    """Played as the live queue does: a second's work ahead on both cores, newcomers begun first."""
    weights, lengths = {"a": 1.0, "b": 2.0, "c": 5.0}, {"a": 0.9, "b": 0.5, "c": 0.3}
    owners = {name: (ProjectId(name), UserId("u")) for name in weights}
    used, active = dict.fromkeys(weights, 0.0), dict.fromkeys(weights, 0)
    ahead: deque[str] = deque()
    running: list[tuple[float, str]] = []
    now, typical = 0.0, 0.5
    for turn in range(2500):
        room = (256, len(ahead), 2.0, float(len(running)), typical)
        lines = [
            Line(
                owner, [JobId(f"{name}{k}") for k in range(8)], active[name], 8, charge=typical,
                usage=used[name] + active[name] * typical, project_weight=weights[name],
            )
            for name, owner in owners.items()
        ]  # fmt: skip
        chosen = choose(lines, launch_room(*room), turn, beyond=newcomer_room(*room))
        for job, (project, _) in zip(chosen.jobs, chosen.owners, strict=True):
            active[project] += 1
            ahead.appendleft(project) if job in chosen.first else ahead.append(project)
        while ahead and len(running) < 2:
            name = ahead.popleft()
            heapq.heappush(running, (now + lengths[name], name))
        now, name = heapq.heappop(running)
        used[name] += lengths[name]
        active[name] -= 1
    total = sum(used.values())
    for name, weight in weights.items():
        assert used[name] / total == pytest.approx(weight / 8.0, rel=0.05), used


def test_what_is_kept_for_a_kind_of_work_is_what_it_lacks_of_its_share() -> None:
    assert kept_room(0.25, 8.0, 0.0) == 2
    assert kept_room(0.25, 8.0, 1.0) == 1
    assert kept_room(0.25, 8.0, 3.0) == 0
    assert kept_room(0.1, 2.0, 0.0) == 1, "a share of less than a core is a core"
    assert kept_room(0.0, 8.0, 0.0) == 0


def test_nobody_is_let_through_without_room_or_from_an_empty_or_full_line() -> None:
    assert choose([line("a", 2)], 0, 7).jobs == ()
    chosen = choose([line("a", 0), line("b", 2, active=4), line("c", 3, active=2)], 5, 7)
    assert chosen.jobs == ("c0", "c1")
    assert chosen.served == {owner("c"): 9}


def test_jobs_that_an_interactive_session_keeps_from_starting_take_no_turn() -> None:
    assert may_begin([2.0, 0.5, 1.0], 2.0, 0.0) == 3
    assert may_begin([2.0, 0.5, 1.0], 2.0, 1.0) == 2


def test_lines_go_on_without_the_jobs_that_were_chosen_and_with_what_those_will_use() -> None:
    lines = [replace(line("a", 3, active=1, served=4), usage=10.0, charge=60.0), line("b", 2), line("c", 1)]
    chosen = choose(lines, 3, 7)
    assert chosen.owners == (owner("b"), owner("c"), owner("a"))
    assert chosen.served == {owner("b"): 8, owner("c"): 9, owner("a"): 10}
    a, b, c = without(lines, chosen)
    assert (a.waiting, a.active, a.usage, a.served) == (("a1", "a2"), 2, 70.0, 4)
    assert (b.waiting, b.active, b.usage) == (("b1",), 1, 60.0)
    assert (c.waiting, c.active, c.usage) == ((), 1, 60.0)
    twice = choose([line("d", 3)], 2, 0)
    (d,) = without([line("d", 3)], twice)
    assert (d.waiting, d.active, d.usage) == (("d2",), 2, 120.0)


def test_what_the_others_of_a_project_use_counts_for_it() -> None:
    astro, bio = (ProjectId("astro"), UserId("a")), (ProjectId("bio"), UserId("b"))
    lines = [Line(astro, [JobId("a0")], 0, 4, usage=1.0), Line(bio, [JobId("b0")], 0, 4, usage=2.0)]
    assert choose(lines, 1, 0).jobs == ("a0",)
    assert choose(lines, 1, 0, {(ProjectId("astro"), UserId("c")): 5.0}).jobs == ("b0",)
    shares = Shares.of(lines, {astro: 5.0, (ProjectId("astro"), UserId("c")): 3.0})
    assert shares.projects == {"astro": 8.0, "bio": 2.0}
    assert shares.users[astro] == 5.0, "who is told among the others is not counted twice"
    assert shares.claim(lines[0]) == (0.0, 8.0, 5.0)
    assert Shares().claim(lines[0]) == (0.0, 0.0, 0.0)


def test_beyond_the_room_nobody_gets_a_second_job() -> None:
    chosen = choose([line("a", 3), line("b", 1)], 1, 0, beyond=3)
    assert chosen.jobs == ("a0", "b0")
    assert choose([line("a", 3)], 2, 0).first == {"a0"}


def test_one_core_is_enough_to_know_the_devices() -> None:
    assert launch_room(256, 0, 1.0, 0.0, 100.0) == 1
    assert newcomer_room(256, 0, 1.0, 0.0, 1.0) == 1
