"""Devices that are taken away: expected seconds as a simulation finds them, and what the pool makes of it."""

from __future__ import annotations

import numpy as np
import pytest

from easel.optimise.finite import FiniteGP
from easel.price.book import Spot
from easel.schedule.interruptions import NEVER, Interruptions
from easel.schedule.state import PoolDevice, Tenant


@pytest.mark.parametrize("checkpoint", [None, 300.0])
def test_expected_seconds_are_those_of_the_price_book_and_of_runs_played_out(
    checkpoint: float | None,
) -> None:
    terms = Spot(
        kind="spot", discount=0.7, interruptions_per_hour=2.0, checkpoint_every_s=checkpoint, restart_s=90.0
    )
    risk = Interruptions(2.0, 90.0, checkpoint or np.inf)
    seconds = np.array([1.0, 60.0, 1800.0])
    np.testing.assert_allclose(risk.stretched(seconds), terms.stretch(seconds), rtol=1e-9)
    rng = np.random.default_rng(0)
    played = np.mean([terms.play(seconds, rng)[0] for _ in range(20_000)], axis=0)
    np.testing.assert_allclose(played, risk.stretched(seconds), rtol=0.05)


def test_where_nothing_is_taken_away_nothing_changes_and_what_is_impossible_stays_so() -> None:
    seconds = np.array([3.0, np.inf])
    assert NEVER.stretched(seconds) is seconds
    assert np.isposinf(Interruptions(5.0, 60.0).stretched(seconds)[1])


def test_a_long_trial_costs_more_on_a_device_that_goes_away_and_a_short_one_hardly() -> None:
    belief = FiniteGP.prior(np.full(2, 0.5), 0.04 * np.eye(2), 1e-4)
    tenant = Tenant("a", ("short", "long"), belief, np.array([2.0, 3600.0]))
    firm, spot = PoolDevice("firm"), PoolDevice("spot", interruptions=Interruptions(1.0, restart_s=60.0))
    more = tenant.costs(spot) / tenant.costs(firm)
    assert more[0] < 1.05
    assert more[1] > 1.5
    assert firm.alike != spot.alike
