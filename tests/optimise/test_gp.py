from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as peer

from easel.errors import InvalidInput
from easel.optimise.gp import GP, Joint, _negative_log_posterior, fit
from easel.optimise.kernels import Constant, FiniteRank, Matern52

rng = np.random.default_rng(3)
X = rng.uniform(size=(15, 2))
y = np.sin(5 * X[:, 0]) + X[:, 1] + 0.05 * rng.standard_normal(15)
Z = rng.uniform(size=(9, 2))
KERNEL = Constant() * Matern52(np.log([0.4, 0.7]))


def test_the_posterior_equals_scikit_learn_with_the_same_hyperparameters() -> None:
    gp = GP.on(KERNEL, X, y, 0.01)
    theirs = GaussianProcessRegressor(
        peer.Matern([0.4, 0.7], nu=2.5), alpha=0.01, optimizer=None, normalize_y=True
    ).fit(X, y)
    mean, sd = gp.posterior(Z)
    their_mean, their_cov = theirs.predict(Z, return_cov=True)
    assert np.allclose(mean, their_mean)
    assert np.allclose(sd, np.sqrt(np.diag(their_cov)))
    assert np.allclose(gp.joint(Z).cov, their_cov)
    assert np.allclose(gp.between(Z[:3], Z[3:]), their_cov[:3, 3:])


def test_the_log_likelihood_is_the_gaussian_density() -> None:
    gp = GP.on(KERNEL, X, y, 0.01)
    z = (y - y.mean()) / y.std()
    expected = multivariate_normal(np.zeros(15), KERNEL(X, X) + 0.01 * np.eye(15)).logpdf(z)
    assert gp.log_likelihood() == pytest.approx(expected)


def test_the_gradient_of_the_likelihood_is_the_finite_difference() -> None:
    kernel = Constant() * Matern52.ard(1, columns=(0,)) * FiniteRank(1)
    boxes = (*kernel.boxes, Constant().box)
    objective = _negative_log_posterior(kernel, X, y - y.mean(), np.full(15, 0.02), boxes)
    theta = np.append(kernel.theta, -3.0) + 0.1
    _, gradient = objective(theta)
    for i in range(len(theta)):
        step = np.zeros(len(theta))
        step[i] = 1e-6
        assert gradient[i] == pytest.approx(
            (objective(theta + step)[0] - objective(theta - step)[0]) / 2e-6, rel=1e-4, abs=1e-6
        )


def test_fitting_raises_the_likelihood_and_recovers_the_irrelevant_dimension() -> None:
    A = np.random.default_rng(1).uniform(size=(40, 2))
    values = np.sin(8 * A[:, 0])
    start = Constant() * Matern52.ard(2)
    gp = fit(start, A, values, starts=3, rng=np.random.default_rng(0))
    assert gp.log_likelihood() > GP.on(start, A, values, 0.01).log_likelihood()
    _, length_0, length_1 = gp.kernel.theta
    assert length_1 > length_0 + np.log(2)
    mean, _ = gp.posterior(A + 0.003)
    assert np.abs(mean - np.sin(8 * (A[:, 0] + 0.003))).max() < 0.1


def test_one_more_observation_equals_starting_over() -> None:
    gp = GP.on(KERNEL, X[:-1], y[:-1], 0.01)
    grown = gp.conditioned(X[-1], float(y[-1]))
    again = GP.on(KERNEL, X, y, 0.01, offset=gp.offset, scale=gp.scale)
    for a, b in zip(grown.posterior(Z), again.posterior(Z), strict=True):
        assert np.allclose(a, b)


def test_a_joint_gaussian_conditions_like_the_regression() -> None:
    gp = GP.on(KERNEL, X, y, 0.01)
    joint = gp.joint(Z).observed(4, 0.7, noise=0.01 * gp.scale**2)
    direct = gp.conditioned(Z[4], 0.7).joint(Z)
    assert np.allclose(joint.mean, direct.mean, atol=1e-8)
    assert np.allclose(joint.cov, direct.cov, atol=1e-8)


def test_the_gain_is_what_one_deviation_of_surprise_does_to_the_means() -> None:
    joint = GP.on(KERNEL, X, y, 0.01).joint(Z)
    noise = 0.003
    surprise = float(joint.mean[2] + np.sqrt(joint.cov[2, 2] + noise))
    assert np.allclose(joint.observed(2, surprise, noise).mean - joint.mean, joint.gain(2, noise))


def test_draws_have_the_moments_of_the_posterior() -> None:
    joint = GP.on(KERNEL, X, y, 0.01).joint(Z)
    draws = joint.sample(40_000, np.random.default_rng(0))
    assert np.allclose(draws.mean(0), joint.mean, atol=0.01)
    assert np.allclose(np.cov(draws.T), joint.cov, atol=0.01)


def test_known_noise_of_an_observation_widens_only_its_neighbourhood() -> None:
    noisy = np.zeros(15)
    noisy[0] = 4.0
    _, plain = GP.on(KERNEL, X, y, 1e-4).posterior(X)
    _, widened = GP.on(KERNEL, X, y, 1e-4, extra=noisy).posterior(X)
    assert widened[0] > 5 * plain[0]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_the_posterior_variance_lies_between_zero_and_the_prior_and_order_does_not_matter(
    data: st.DataObject,
) -> None:
    n = data.draw(st.integers(0, 8))
    # few distinct points, so that duplicates are common
    points = np.array(
        data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=n, max_size=n))
    )
    A = points.reshape(n, 2) / 2.0
    values = np.array(data.draw(st.lists(st.floats(-1e3, 1e3), min_size=n, max_size=n)))
    gp = GP.on(KERNEL, A, values, 1e-6)
    mean, sd = gp.posterior(Z)
    assert np.isfinite(mean).all()
    assert (sd >= 0).all()
    assert (sd <= gp.scale * (1 + 1e-6)).all()
    order = np.random.default_rng(n).permutation(n)
    mean_2, sd_2 = GP.on(KERNEL, A[order], values[order], 1e-6).posterior(Z)
    assert np.allclose(mean, mean_2, rtol=1e-3, atol=1e-3 * gp.scale)
    assert np.allclose(sd, sd_2, rtol=1e-3, atol=1e-3 * gp.scale)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_or_constant_observations_fit_without_fuss(n: int) -> None:
    gp = fit(KERNEL, X[:n], np.full(n, 0.25))
    mean, sd = gp.posterior(Z)
    assert np.isfinite(mean).all()
    assert np.isfinite(sd).all()


def test_a_nan_value_is_refused_with_advice() -> None:
    with pytest.raises(InvalidInput, match="drop failed observations"):
        GP.on(KERNEL, X, np.where(np.arange(15) == 3, np.nan, y), 0.01)


def test_torch_gives_the_same_posterior() -> None:
    gp = GP.on(KERNEL, X, y, 0.01)
    on_torch = GP.on(KERNEL, torch.tensor(X), torch.tensor(y), 0.01)
    for ours, theirs in zip(gp.posterior(Z), on_torch.posterior(torch.tensor(Z)), strict=True):
        assert np.allclose(ours, theirs.numpy())
    grown = on_torch.conditioned(torch.tensor(Z[0]), 0.3).joint(torch.tensor(Z))
    assert np.allclose(grown.cov.numpy(), gp.conditioned(Z[0], 0.3).joint(Z).cov)


def test_a_point_without_variance_teaches_nothing() -> None:
    joint = Joint(np.zeros(2), np.diag([0.0, 1.0])).observed(0, 5.0)
    assert joint.mean.tolist() == [0.0, 0.0]
