"""Qualities as angles: gains by quadrature against brute force."""

from __future__ import annotations

import numpy as np
import pytest

from easel.optimise.arcsine import gain_above, quality_moments, to_angle, to_quality


def brute_force(m: float, s: float, best: float, ceiling: float) -> float:
    z = np.linspace(-9.0, 9.0, 200_001)
    gain = np.maximum(np.minimum(to_quality(m + s * z), ceiling) - best, 0.0)
    return float((gain * np.exp(-0.5 * z * z)).sum() / np.exp(-0.5 * z * z).sum())


@pytest.mark.parametrize("m", [0.1, 0.8, 1.2, 1.5])
@pytest.mark.parametrize("s", [0.003, 0.05, 0.4])
@pytest.mark.parametrize(("best", "ceiling"), [(0.0, 1.0), (0.5, 1.0), (0.93, 0.97), (0.99, 1.0)])
def test_the_expected_gain_is_that_of_brute_force(m: float, s: float, best: float, ceiling: float) -> None:
    found = float(gain_above(np.array([m]), np.array([s]), best, ceiling)[0])
    assert found == pytest.approx(brute_force(m, s, best, ceiling), rel=2e-3, abs=1e-8)


def test_a_certain_candidate_gains_what_it_is_above_the_best() -> None:
    m = to_angle(np.array([0.7, 0.9]))
    assert gain_above(m, np.zeros(2), 0.8, 1.0) == pytest.approx([0.0, 0.1])


def test_nothing_is_gained_above_the_ceiling() -> None:
    assert gain_above(np.array([1.5]), np.array([0.3]), 1.0, 1.0)[0] == 0.0
    assert gain_above(np.array([1.5]), np.array([0.3]), 0.9, 0.8)[0] == 0.0


def test_the_moments_in_quality_are_those_of_a_sample() -> None:
    w = np.random.default_rng(0).normal(0.9, 0.1, 400_000)
    mean, sd = quality_moments(np.array([0.9]), np.array([0.1]))
    assert mean[0] == pytest.approx((np.sin(w) ** 2).mean(), abs=1e-3)
    assert sd[0] == pytest.approx((np.sin(w) ** 2).std(), abs=1e-3)


def test_qualities_outside_are_taken_as_the_nearest_inside() -> None:
    assert to_quality(to_angle(np.array([-0.1, 0.3, 1.2]))) == pytest.approx([0.0, 0.3, 1.0])
