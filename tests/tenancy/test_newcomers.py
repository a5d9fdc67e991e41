"""What takes long and cannot be stopped is begun only beside something that can make room for a newcomer."""

from __future__ import annotations

import numpy as np

from easel.optimise.finite import FiniteGP
from easel.records.decision import LeaveIdle, StartTrial
from easel.schedule.policies.default import Easel
from easel.schedule.state import PoolDevice, PoolState, Tenant
from easel.tenancy.newcomers import SOON_S, NewcomersFirst

POLICY = NewcomersFirst(Easel())


def app(name: str, mean: list[float], cost: list[float], stops: list[bool] | None) -> Tenant:
    """One with a model already, of what is believed about the rest."""
    K = len(mean)
    one = Tenant(
        name,
        tuple(f"{name}{k}" for k in range(K)),
        FiniteGP.prior(np.array(mean), 0.04 * np.eye(K), 1e-4),
        np.array(cost),
        ceiling=1.0,
        stops=None if stops is None else np.array(stops),
    )
    return one.resumed([], [], [], 0).changed(best=0.5)


def chosen(state: PoolState) -> str:
    found = POLICY.decide(state)
    assert isinstance(found, StartTrial)
    return found.candidate


def pool(*apps: Tenant) -> PoolState:
    return PoolState({one.name: one for one in apps}, PoolDevice("core"))


def test_a_long_one_that_cannot_be_stopped_waits_for_company() -> None:
    one = app("a", [0.9, 0.6], [60.0, 60.0], [False, True])
    state = pool(one)
    assert chosen(state) == "a1", "the better one would hold the pool for a minute"
    begun = POLICY.decide(state)
    assert isinstance(begun, StartTrial)
    assert chosen(state.started(begun)) == "a0", "the other can be asked to give way"


def test_a_short_one_is_in_nobodys_way() -> None:
    assert chosen(pool(app("a", [0.9, 0.6], [SOON_S, SOON_S], [False, True]))) == "a0"


def test_where_nothing_else_may_run_it_runs() -> None:
    assert chosen(pool(app("a", [0.9, 0.6], [60.0, 60.0], [False, False]))) == "a0"


def test_who_says_nothing_of_stopping_is_served_as_ever() -> None:
    assert chosen(pool(app("a", [0.9, 0.6], [60.0, 60.0], None))) == "a0"


def test_an_empty_pool_stays_idle() -> None:
    assert isinstance(POLICY.decide(pool()), LeaveIdle)
