"""Forests: what they remember, where they doubt, what an imagined observation changes."""

from __future__ import annotations

import numpy as np
import pytest

from easel.optimise.entropy import Draws, constrained_information_gain, draw, entropy, information_gain
from easel.optimise.forest import grow
from easel.optimise.quadrature import normal_grid, normal_nodes


def test_a_tree_without_bagging_reproduces_distinct_observations() -> None:
    rng = np.random.default_rng(0)
    x = rng.random((60, 4))
    y = np.stack([np.sin(5 * x[:, 0]), x[:, 1] * x[:, 2]])
    mean, spread = grow(x, y, trees=3, rng=rng, bootstrap=False).predict(x)
    assert np.allclose(mean, y)
    assert np.allclose(spread, 0.0)


def test_equal_points_with_different_values_share_their_mean() -> None:
    x = np.zeros((4, 2))
    mean, _ = grow(
        x, np.array([1.0, 2.0, 3.0, 6.0]), trees=1, rng=np.random.default_rng(0), bootstrap=False
    ).predict(x)
    assert np.allclose(mean, 3.0)


@pytest.mark.parametrize("n", [1, 2, 300])
def test_any_number_of_observations_is_enough(n: int) -> None:
    rng = np.random.default_rng(1)
    x = rng.random((n, 3))
    mean, spread = grow(x, x[:, 0], trees=5, rng=rng).predict(rng.random((7, 3)))
    assert mean.shape == spread.shape == (1, 7)
    assert np.isfinite(mean).all()
    assert mean.min() >= x[:, 0].min()
    assert mean.max() <= x[:, 0].max()


def test_constant_values_give_a_constant_without_spread() -> None:
    rng = np.random.default_rng(1)
    mean, spread = grow(rng.random((20, 3)), np.full(20, 0.7), trees=5, rng=rng).predict(rng.random((9, 3)))
    assert np.allclose(mean, 0.7)
    assert np.allclose(spread, 0.0)


def test_the_forest_predicts_better_than_the_mean_and_doubts_more_away_from_the_data() -> None:
    rng = np.random.default_rng(2)
    x = rng.random((150, 5)) * np.array([0.5, 1, 1, 1, 1])
    forest = grow(x, 3 * x[:, 0] + x[:, 1], trees=10, rng=rng)
    inside, outside = rng.random((400, 5)) * np.array([0.5, 1, 1, 1, 1]), rng.random((400, 5))
    outside[:, 0] = 0.5 + 0.5 * outside[:, 0]
    truth = 3 * inside[:, 0] + inside[:, 1]
    mean, _ = forest.predict(inside)
    assert ((mean[0] - truth) ** 2).mean() < 0.25 * truth.var()


def test_the_same_seed_grows_the_same_forest() -> None:
    x = np.random.default_rng(3).random((40, 3))
    a, b = (grow(x, x[:, 0], trees=4, rng=np.random.default_rng(9)).predict(x) for _ in range(2))
    assert np.array_equal(a[0], b[0])


def test_an_imagined_observation_changes_its_own_leaf_and_nothing_else() -> None:
    rng = np.random.default_rng(4)
    x = rng.random((30, 3))
    forest = grow(x, x[:, 0], trees=5, rng=rng)
    candidates = rng.random((50, 3))
    leaves = forest.leaves(candidates)
    changed = forest.insert(candidates[:6], leaves[..., :6], candidates, leaves, rng)
    same_leaf = leaves[..., :6, None] == leaves[..., None, :]
    assert not (changed & ~same_leaf).any()
    hit = changed[:, :, np.arange(6), np.arange(6)]
    assert np.array_equal(hit, np.broadcast_to(hit[..., :1], hit.shape))  # a tree takes all of them or none
    assert hit.any()


def test_inserting_shifts_the_prediction_like_growing_anew() -> None:
    rng = np.random.default_rng(5)
    x = rng.random((40, 2))
    y = 0.001 * rng.standard_normal(40)  # so that trees grow to single observations
    new = np.array([[0.5, 0.5]])
    near, far = np.array([[0.5, 0.5]]), np.array([[0.02, 0.02]])
    inserted, regrown = [], []
    for _ in range(60):
        forest = grow(x, y, trees=5, rng=rng)
        at = np.concatenate([near, far])
        leaves = forest.leaves(at)
        changed = forest.insert(new, forest.leaves(new), at, leaves, rng)
        inserted.append(np.where(changed[0, :, 0], 1.0, forest.trees(at)[0]).mean(axis=0))
        regrown.append(grow(np.concatenate([x, new]), np.append(y, 1.0), trees=5, rng=rng).predict(at)[0][0])
    assert np.mean(inserted, axis=0) == pytest.approx(np.mean(regrown, axis=0), abs=0.12)


def test_gauss_hermite_integrates_polynomials_exactly() -> None:
    z, w = normal_nodes(3)
    assert w.sum() == pytest.approx(1.0)
    assert w @ z**4 == pytest.approx(3.0)
    grid, weight = normal_grid((3, 1))
    assert grid.shape == (3, 2)
    assert weight @ grid[:, 0] ** 2 == pytest.approx(1.0)


def _process(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    points = np.linspace(0, 1, 12)
    cov = np.exp(-0.5 * (points[:, None] - points) ** 2 / 0.15**2)
    return np.zeros(12), cov


def test_shifted_draws_follow_the_conditional_distribution() -> None:
    rng = np.random.default_rng(6)
    mean, cov = _process(rng)
    noise = 0.1
    drawn = draw(mean, cov, cov[3:4], cov[3:4, 3], noise, 20_000, rng)
    after = drawn.shifted(slice(0, 1), np.array([1.5]))[0, 0]
    gain = cov[:, 3] / np.sqrt(cov[3, 3] + noise)
    assert after.mean(axis=0) == pytest.approx(1.5 * gain, abs=0.03)
    assert np.cov(after.T) == pytest.approx(cov - np.outer(gain, gain), abs=0.05)


def test_entropy_of_certainty_is_zero_and_of_ignorance_log_n() -> None:
    assert entropy(np.array([5.0, 0.0])) == pytest.approx(0.0)
    assert entropy(np.ones(8)) == pytest.approx(np.log(8))


def test_an_unrelated_candidate_tells_nothing_and_a_telling_one_something() -> None:
    rng = np.random.default_rng(7)
    mean, cov = _process(rng)
    cross = np.stack([np.zeros(12), cov[5]])
    drawn = draw(mean, cov, cross, np.array([1.0, 1.0]), 1e-3, 600, rng)
    nothing, something = information_gain(drawn, *normal_nodes(3))
    assert nothing == pytest.approx(0.0, abs=1e-9)
    assert something > 0.05


def test_points_that_break_a_limit_are_not_the_constrained_optimum() -> None:
    rng = np.random.default_rng(8)
    mean, cov = _process(rng)
    quality = draw(mean, cov, cov[[5]], cov[[5], [5]], 1e-3, 400, rng)
    never = Draws(np.ones((400, 12)), np.zeros((400, 1)), np.zeros((1, 12)))
    gain = constrained_information_gain(quality, [(never, np.zeros(12))], np.zeros((1, 2)), np.ones(1))
    assert gain == pytest.approx(0.0, abs=1e-12)  # nothing is feasible, so nothing is to be learnt
