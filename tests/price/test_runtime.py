from __future__ import annotations

import json
import math
from collections.abc import Callable

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from easel.errors import InvalidInput
from easel.price.design import d_optimal, default_size, full_grid
from easel.price.forms import FORMS, Amdahl, Growing, RuntimeForm
from easel.price.runs import ProfiledRun, RunOutcome, table
from easel.price.runtime import RuntimeModel, learn, learn_log_linear

Law = Callable[[dict[str, float]], float]


def ideal(cell: dict[str, float]) -> float:
    """The paper's law: t = t₁·e/c."""
    return 30.0 * cell["epoch"] / cell["cpus"]


def realistic(cell: dict[str, float]) -> float:
    """Start-up on one processor, and work of which a fifth is serial."""
    c1, c2 = min(cell["cpus"], 1.0), max(cell["cpus"], 1.0)
    work = 3.0 * cell["epoch"] * math.pow(cell["rows"] / 1000, 0.9) * (0.2 + 0.8 / c2)
    return (4.0 + work) / c1


def profile(
    law: Law, levels: dict[str, tuple[float, ...]], noise: float = 0.0, seed: int = 0
) -> list[ProfiledRun]:
    rng = np.random.default_rng(seed)
    return [
        ProfiledRun(
            cell,
            RunOutcome.FINISHED,
            law(cell) * float(np.exp(noise * rng.standard_normal())),
            job=f"job_{i}",
        )
        for i, cell in enumerate(full_grid(levels))
    ]


LEVELS = {"epoch": (1.0, 3.0, 8.0), "rows": (1000.0, 4000.0)}


def test_the_papers_model_is_least_squares_in_logarithms() -> None:
    runs = profile(realistic, LEVELS, noise=0.1)
    model, data = learn_log_linear(runs), table(runs)
    peer = LinearRegression().fit(data.X, data.y)
    np.testing.assert_allclose(model.fitted.theta[1:], peer.coef_, atol=1e-5)
    np.testing.assert_allclose(model.predict_log(data.X).centre, peer.predict(data.X), atol=1e-5)


def test_the_papers_law_is_learned_and_extrapolated() -> None:
    model = learn(profile(ideal, {"epoch": (1.0, 2.0, 3.0)}, noise=0.02))
    far = {"epoch": 20.0, "cpus": 8.0, "memory_mb": 8192.0}
    low, high = model.predict([far]).interval(0.95)
    assert low[0] <= ideal(far) <= high[0]
    assert model.beyond(far) == ("epoch", "cpus", "memory_mb")
    assert model.beyond({"epoch": 2.0, "cpus": 1.0, "memory_mb": 512.0}) == ()


def test_the_default_bends_with_the_processors_where_the_papers_model_cannot() -> None:
    runs = profile(realistic, LEVELS, noise=0.03)
    better, paper = learn(runs), learn_log_linear(runs)
    cells = [
        {"epoch": 20.0, "rows": 3000.0, "cpus": c, "memory_mb": 1024.0} for c in (0.5, 1.0, 2.0, 4.0, 8.0)
    ]
    truth = np.array([realistic(cell) for cell in cells])
    errors = [np.abs(m.predict(cells).seconds / truth - 1).max() for m in (better, paper)]
    assert errors[0] < 0.15
    assert errors[0] < 0.5 * errors[1]
    assert better.left_out[better.chosen] < better.left_out["powers"]


def test_half_of_the_grid_predicts_as_well_as_all_of_it() -> None:
    runs = profile(realistic, LEVELS, noise=0.03)
    grid = [dict(run.features) for run in runs]
    part = [runs[i] for i in d_optimal(grid, default_size(grid))]
    assert len(part) <= len(runs) / 2
    cells = [
        {"epoch": e, "rows": 2500.0, "cpus": c, "memory_mb": 512.0}
        for e in (2.0, 15.0)
        for c in (0.5, 1.0, 2.0)
    ]
    truth = np.array([realistic(cell) for cell in cells])
    assert np.abs(learn(part).predict(cells).seconds / truth - 1).max() < 0.1


def test_intervals_hold_as_often_as_they_promise() -> None:
    cells = [
        {"epoch": e, "rows": r, "cpus": c, "memory_mb": 512.0}
        for e in (2.0, 12.0)
        for r in (1500.0, 6000.0)
        for c in (0.5, 2.0)
    ]
    inside = []
    for seed in range(10):
        runs = profile(realistic, LEVELS, noise=0.1, seed=seed)[::3]
        low, high = learn(runs).predict(cells).interval(0.9)
        truth = np.array([realistic(cell) for cell in cells]) * np.exp(
            0.1 * np.random.default_rng(1000 + seed).standard_normal(len(cells))
        )
        inside.append((low <= truth) & (truth <= high))
    assert 0.82 <= np.mean(inside) <= 0.99


def test_quantiles_and_chances_agree() -> None:
    prediction = learn(profile(ideal, {"epoch": (1.0, 2.0, 3.0)}, noise=0.1)).predict(
        [{"epoch": 2.0, "cpus": 1.0, "memory_mb": 512.0}]
    )
    late = float(prediction.quantile(0.95)[0])
    assert prediction.chance_within(late)[0] == pytest.approx(0.95)
    assert prediction.chance_within(0.0)[0] == 0.0
    assert prediction.quantile(0.5)[0] == pytest.approx(prediction.seconds[0])
    with pytest.raises(InvalidInput, match="between 0 and 1"):
        prediction.quantile(1.0)


def test_the_gp_takes_up_a_shape_that_no_form_has() -> None:
    def stepped(cell: dict[str, float]) -> float:
        return realistic(cell) * (2.0 if cell["memory_mb"] == 512.0 else 1.0)

    model = learn(profile(stepped, LEVELS, noise=0.02))
    cells = [{"epoch": 3.0, "rows": 1000.0, "cpus": 1.0, "memory_mb": m} for m in (512.0, 2048.0)]
    slow, fast = model.predict(cells).seconds
    assert "gp" in model.chosen
    assert slow / fast == pytest.approx(2.0, rel=0.2)


def test_one_disturbed_run_does_not_bend_the_model() -> None:
    runs = profile(realistic, LEVELS, noise=0.02)
    runs[5] = ProfiledRun(runs[5].features, RunOutcome.FINISHED, runs[5].seconds * 6)
    cell = {"epoch": 5.0, "rows": 2000.0, "cpus": 1.0, "memory_mb": 1024.0}
    assert learn(runs).predict([cell]).seconds[0] == pytest.approx(realistic(cell), rel=0.1)


def test_a_few_runs_and_an_earlier_profile_beat_a_few_runs_alone() -> None:
    def sublinear(cell: dict[str, float]) -> float:
        c1, c2 = min(cell["cpus"], 1.0), max(cell["cpus"], 1.0)
        work = 6.0 * math.pow(cell["epoch"], 0.6) * math.pow(cell["rows"] / 1000, 0.4) * (0.7 + 0.3 / c2)
        return (4.0 + work) / c1

    def slower_machine(cell: dict[str, float]) -> float:
        return 1.5 * sublinear(cell)

    earlier = learn(profile(sublinear, LEVELS, noise=0.03))
    cells = [
        {"epoch": e, "rows": 3000.0, "cpus": c, "memory_mb": 1024.0}
        for e in (2.0, 40.0)
        for c in (0.5, 1.0, 2.0)
    ]
    truth = np.array([slower_machine(cell) for cell in cells])
    error: dict[str, list[float]] = {"with": [], "without": []}
    for seed in range(1, 6):
        few = profile(slower_machine, LEVELS, noise=0.05, seed=seed)[4::11]
        for name, prior in (("with", earlier), ("without", None)):
            missed = np.abs(np.log(learn(few, prior).predict(cells).seconds / truth))
            error[name].append(float(missed.mean()))
    assert np.mean(error["with"]) < 0.1
    assert np.mean(error["with"]) < 0.7 * np.mean(error["without"])


def test_one_run_is_enough_after_an_earlier_profile() -> None:
    earlier = learn(profile(realistic, LEVELS, noise=0.03))
    one = profile(realistic, LEVELS)[20:21]
    cell = {"epoch": 20.0, "rows": 3000.0, "cpus": 2.0, "memory_mb": 1024.0}
    assert learn(one, earlier).predict([cell]).seconds[0] == pytest.approx(realistic(cell), rel=0.2)


def test_an_earlier_profile_with_other_arguments_is_left_aside() -> None:
    other = learn(profile(ideal, {"epoch": (1.0, 2.0, 3.0)}))
    runs = profile(realistic, LEVELS, noise=0.02)
    assert "transferred" not in "".join(learn(runs, other).left_out)


def test_a_model_survives_being_written_down() -> None:
    model = learn(profile(realistic, LEVELS, noise=0.05))
    again = RuntimeModel.from_json(json.loads(json.dumps(model.to_json())))
    cells = [{"epoch": 7.0, "rows": 1500.0, "cpus": 1.5, "memory_mb": 768.0}]
    np.testing.assert_allclose(again.predict(cells).interval(), model.predict(cells).interval())
    assert again.jobs == model.jobs
    assert again.left_out == model.left_out


def test_runs_of_zero_seconds_count_as_the_clocks_resolution() -> None:
    runs = profile(lambda cell: 0.0, {"epoch": (1.0, 2.0)})
    prediction = learn(runs).predict([{"epoch": 3.0, "cpus": 1.0, "memory_mb": 512.0}])
    assert prediction.seconds[0] == pytest.approx(0.001, rel=0.5)


def test_failed_runs_are_not_learned_from_and_all_failing_is_an_error() -> None:
    runs = profile(ideal, {"epoch": (1.0, 2.0, 3.0)}, noise=0.02)
    broken = [ProfiledRun(run.features, RunOutcome.FAILED, 0.1) for run in runs]
    cell = {"epoch": 2.0, "cpus": 1.0, "memory_mb": 512.0}
    assert learn(runs + broken).predict([cell]).seconds[0] == pytest.approx(60.0, rel=0.1)
    with pytest.raises(InvalidInput, match=r"no profiling run finished \(27 failed\)"):
        learn(broken)


@pytest.mark.parametrize(
    ("runs", "part"),
    [
        ([], "no profiling run finished"),
        (profile(ideal, {"epoch": (1.0, 2.0)})[:3], "too few"),
        ([ProfiledRun({"cpus": 1, "memory_mb": 1}, RunOutcome.FINISHED, -1.0)] * 5, "not negative"),
        ([ProfiledRun({"cpus": 1, "memory_mb": 0}, RunOutcome.FINISHED, 1.0)] * 5, "must be positive"),
        (
            [
                ProfiledRun({"cpus": 1}, RunOutcome.FINISHED, 1.0),
                ProfiledRun({"n": 1}, RunOutcome.FINISHED, 1.0),
            ],
            "same arguments",
        ),
    ],
)
def test_useless_profiles_are_refused(runs: list[ProfiledRun], part: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        learn(runs)
    assert part in caught.value.message


@pytest.mark.parametrize("kind", [*FORMS.values(), Growing])
def test_jacobians_agree_with_finite_differences(kind: type[RuntimeForm]) -> None:
    names = ("epoch", "rows", "cpus", "memory_mb")
    form, rng = kind(names), np.random.default_rng(0)
    X = np.log(rng.uniform(0.3, 4.0, (7, 4)))
    theta = form.prior.centre + 0.3 * rng.standard_normal(len(form.parameters))
    J = form.value(theta, X)[1]
    for k in range(len(theta)):
        step = np.zeros(len(theta))
        step[k] = 1e-6
        slope = (form.value(theta + step, X)[0] - form.value(theta - step, X)[0]) / 2e-6
        np.testing.assert_allclose(J[:, k], slope, atol=1e-6)


def test_absurd_parameters_saturate_instead_of_overflowing() -> None:
    form = Amdahl(("n", "cpus"))
    value, J = form.value(
        np.array([800.0, -800.0, 5e3, 900.0, -50.0, 1e3]), np.log(np.array([[1e6, 64.0], [1.0, 0.1]]))
    )
    assert np.isfinite(value).all()
    assert np.isfinite(J).all()
