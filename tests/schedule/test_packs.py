"""Which trials go along with a chosen one on a GPU: as long as they add more for their time than the others have."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from easel.declare.resources import Resources, Room
from easel.records.decision import StartTrial, decision_json, trial_of_json
from easel.records.packing import Packing, PackPlace
from easel.schedule.packs import program_time, share_of, with_companions
from easel.schedule.policies import Easel
from easel.schedule.state import PoolDevice, PoolState, Tenant
from easel.testing.policy import pool, started, tenant

GPU = "gpu H200"
SMALL = Packing("small", 1, begin=4.0)


def on_gpu(packs: tuple[Packing | None, ...], room: Room | None = None, **fields: Any) -> PoolState:
    """A pool of one tenant with a result, whose candidates may be packed so on its GPU."""
    K = len(packs)
    one = tenant("a", K, cost=np.full(K, 10.0), packs_on=MappingProxyType({GPU: packs}), **fields)
    state = pool(one, device=PoolDevice("d0", kind=GPU, room=room))
    first = started(Easel(), state)
    return state.started(first).finished(first, 0.3, 1.0)


def packed(state: PoolState) -> tuple[StartTrial, ...]:
    return with_companions(Easel(), state, started(Easel(), state))


def test_small_networks_of_one_shape_are_trained_together() -> None:
    found = packed(on_gpu((SMALL,) * 6))
    assert len(found) == len({one.index for one in found}) == 5
    assert {one.pack and (one.pack.name, one.pack.size) for one in found} == {("a.2", 5)}
    # the process begins once, and each further network adds an eighth
    assert [one.reasons.cost for one in found] == [pytest.approx(10.0 + 6.0 * 4 * 0.12)] * 5
    assert all(one.pack is not None and one.pack.stretch == pytest.approx(1.288) for one in found)


def test_other_shapes_and_what_trains_by_itself_stay_out() -> None:
    wide = Packing("wide", 1, begin=4.0)
    for packs in ((SMALL, wide, None), (None,) * 3):
        state = on_gpu(packs)
        assert packed(state) == (started(Easel(), state),)


def test_a_first_result_comes_by_itself() -> None:
    one = tenant("a", 4, packs_on=MappingProxyType({GPU: (SMALL,) * 4}))
    state = pool(one, device=PoolDevice("d0", kind=GPU))
    assert packed(state) == (started(Easel(), state),)


def test_on_other_devices_nothing_is_packed() -> None:
    state = on_gpu((SMALL,) * 4)
    state = state.on(PoolDevice("core"), 0.0)
    assert packed(state) == (started(Easel(), state),)


def test_one_that_promises_too_little_for_its_time_stays_out() -> None:
    """Five networks each: two such trials take twice as long as one, so only what begins once is won."""
    large = Packing("large", 5, begin=0.0)
    state = on_gpu((large,) * 4)
    assert packed(state) == (started(Easel(), state),)


def test_no_more_go_along_than_fit() -> None:
    need = Resources(1.0, 4096, 0.25)
    needs: dict[str, Any] = {"needs": (need,) * 6, "needs_on": MappingProxyType({GPU: (need,) * 6})}
    found = packed(on_gpu((SMALL,) * 6, Room(1.5, 64_000, (1.0,)), **needs))
    assert len(found) == 3  # each takes half a core at least
    found = packed(on_gpu((SMALL,) * 6, Room(8.0, 8192, (1.0,)), **needs))
    assert len(found) == 2
    assert sum(share_of(need, 2).gpus for _ in found) == need.gpus


def test_a_budget_holds_for_all_together() -> None:
    state = on_gpu((SMALL,) * 6, budget=30.0)
    found = packed(state)
    assert len(found) > 1
    owner: Tenant = state.tenant("a")
    assert sum(one.limit for one in found) <= owner.left
    after = state
    for one in found:
        after = after.started(one)
    assert after.tenant("a").left >= 0


def test_a_decision_keeps_its_pack_when_it_is_stored() -> None:
    for one in packed(on_gpu((SMALL,) * 4)):
        assert trial_of_json(decision_json(one), one.tenant, one.index) == one


def test_eight_networks_are_one_program_and_more_take_turns() -> None:
    assert program_time(1) == 1.0
    assert program_time(5) == pytest.approx(1.48)
    assert program_time(16) == pytest.approx(2 * program_time(8))
    assert program_time(9) == pytest.approx(program_time(8) + 1.0)


def test_what_a_packed_trial_took_says_what_it_would_have_taken_by_itself() -> None:
    place = PackPlace("p", 5, stretch=1.5)
    assert place.alone(30.0, together=5) == pytest.approx(20.0)
    assert place.alone(30.0, together=3) == pytest.approx(24.0)
    assert place.alone(30.0, together=1) == 30.0
