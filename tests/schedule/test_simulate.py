from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from easel.errors import InvalidInput
from easel.schedule.measure import LossCurve, mean_curve, worst_curve
from easel.schedule.policies import named
from easel.schedule.prior import sample_prior, weak
from easel.schedule.similar import history_priors, useful_components
from easel.schedule.simulate import Run, World, hindsight, simulate, tenants
from easel.schedule.state import PoolDevice
from easel.schedule.table import ScoreTable, matern_world, read_table, synthetic

SYN = synthetic(np.random.default_rng(0), tenants=30, candidates=12, sigma_m=0.5, alpha=0.1)
SERVED, HISTORY = SYN.rows(range(5)), SYN.rows(range(5, 30))


def run(policy: str = "easel", seed: int = 0, **world: object) -> Run:
    scene = World(SERVED, **world)  # type: ignore[arg-type]  # free fields
    members = tenants(scene, sample_prior(HISTORY.quality))
    return simulate(scene, named(policy), members, SERVED.total_cost, np.random.default_rng(seed))


def test_the_same_seed_gives_the_same_run_and_another_another() -> None:
    def order(seed: int) -> list[tuple[str, str]]:
        steps = run(seed=seed, failures=0.3, cost_noise=0.5).steps
        return [(s.trial.tenant, s.trial.candidate) for s in steps]

    assert order(1) == order(1)
    assert order(1) != order(2)


def test_the_loss_falls_to_zero_when_everything_may_run() -> None:
    curve = run().curve
    assert (np.diff(curve.loss) <= 1e-12).all()
    assert curve.loss[-1] == pytest.approx(0.0)


def test_hindsight_is_ahead_of_everybody() -> None:
    scene = World(SERVED)
    members = tenants(scene, weak(12))
    horizon = 0.2 * SERVED.total_cost
    best = simulate(scene, hindsight(SERVED), members, horizon, np.random.default_rng(0)).curve.area(horizon)
    for name in ("easel", "round-robin", "mm-gp-ei-prior", "hybrid"):
        assert best <= run(name).curve.area(horizon)


def test_no_device_does_two_things_at_once_and_no_candidate_runs_twice() -> None:
    steps = run(devices=(PoolDevice("a"), PoolDevice("b", speed=2.0))).steps
    for device in "ab":
        mine = [s for s in steps if s.trial.device == device]
        assert all(x.ended <= y.began + 1e-9 for x, y in itertools.pairwise(mine))
    assert len({(s.trial.tenant, s.trial.candidate) for s in steps}) == len(steps)


def test_more_devices_finish_sooner() -> None:
    one = run().curve.time[-1]
    four = run(devices=tuple(PoolDevice(f"d{i}") for i in range(4))).curve.time[-1]
    assert four < 0.35 * one


def test_tenants_come_and_go() -> None:
    steps = run(arrivals={"t000": 2.0}, departures={"t001": 1.0}).steps
    assert min(s.began for s in steps if s.trial.tenant == "t000") >= 2.0
    assert max(s.began for s in steps if s.trial.tenant == "t001") <= 1.0


def test_a_failed_trial_costs_time_and_brings_nothing() -> None:
    lost = run(failures=1.0)
    assert all(np.isnan(s.quality) for s in lost.steps)
    assert lost.curve.loss[-1] == pytest.approx(float(SERVED.best.mean()))


def test_a_pool_without_devices_or_time_is_refused() -> None:
    with pytest.raises(InvalidInput, match="device"):
        run(devices=())


def test_areas_times_and_envelopes_of_curves() -> None:
    a, b = (
        LossCurve(np.array([0.0, 1.0]), np.array([1.0, 0.0])),
        LossCurve(np.array([0.0, 3.0]), np.array([1.0, 0.0])),
    )
    assert a.area(4.0) == pytest.approx(0.25)
    assert (a.reaches(0.5), a.reaches(-1.0)) == (1.0, np.inf)
    assert mean_curve([a, b], 4.0, 5).loss.tolist() == [1.0, 0.5, 0.5, 0.0, 0.0]
    assert worst_curve([a, b], 4.0, 5).loss.tolist() == [1.0, 1.0, 1.0, 0.0, 0.0]


def test_a_table_is_read_from_one_line_per_trial(tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    path.write_text("tenant,candidate,quality,cost\na,x,0.5,1\na,y,,2\nb,x,0.7,3\n")
    found = read_table(path)
    assert found.tenants == ("a", "b")
    assert np.isnan(found.quality[0, 1])
    assert found.best.tolist() == [0.5, 0.7]
    assert found.total_cost == 4.0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tenant,candidate\n", "lacks"),
        ("tenant,candidate,quality,cost\n", "no rows"),
        (
            "tenant,candidate,quality,cost\na,x,much,1\n",
            "line 2: quality and cost must be numbers, not 'much'",
        ),
        ("\udcff\udcfe\udca8", "no table of text"),
    ],
)
def test_an_unreadable_table_says_where(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "history.csv"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(InvalidInput, match=problem):
        read_table(path)


def test_the_generators_follow_the_papers() -> None:
    close = synthetic(np.random.default_rng(0), sigma_m=0.5, alpha=0.1)
    far = synthetic(np.random.default_rng(0), sigma_m=0.01, alpha=0.1)
    residual = [t.quality - t.quality.mean(1, keepdims=True) for t in (close, far)]
    linked, loose = (np.abs(np.corrcoef(r.T)).mean() for r in residual)
    assert linked > 2 * loose
    assert (close.quality >= 0).all()
    assert (close.quality <= 1).all()
    world, cov = matern_world(np.random.default_rng(0), 10, 8)
    assert world.quality.min() == 0.0
    assert np.allclose(np.diag(cov), 1.0)


def cost_driven(n: int, rng: np.random.Generator) -> ScoreTable:
    """The slower a tenant's trials, the better the last candidate does for it."""
    size = rng.standard_normal(n)
    Q = 0.6 + 0.05 * rng.standard_normal((n, 6))
    Q[:, 5] += 0.2 * size
    C = np.exp(size[:, None] + 0.1 * rng.standard_normal((n, 6)))
    return ScoreTable(tuple(f"t{i}" for i in range(n)), tuple(f"m{k}" for k in range(6)), Q, C)


def test_costs_that_tell_of_quality_move_the_prior_mean() -> None:
    world = cost_driven(60, np.random.default_rng(0))
    slow, fast = int(world.cost.mean(1).argmax()), int(world.cost.mean(1).argmin())
    priors = history_priors(world, world)
    assert priors[f"t{slow}"].mean[5] > priors[f"t{fast}"].mean[5] + 0.3


def test_costs_that_tell_nothing_are_not_believed() -> None:
    rng = np.random.default_rng(0)
    assert useful_components(rng.uniform(size=(60, 6)), rng.uniform(size=(60, 6))) == 0
    assert useful_components(SYN.quality[:8], SYN.cost[:8]) == 0


def test_history_over_other_candidates_is_refused() -> None:
    with pytest.raises(InvalidInput, match="same candidates"):
        history_priors(SYN, matern_world(np.random.default_rng(0), 3, 4)[0])
