from __future__ import annotations

import numpy as np
import pytest
import torch

from easel.optimise import acquire

rng = np.random.default_rng(0)
M, S = rng.normal(size=50), rng.uniform(0.01, 2.0, size=50)


def test_expected_improvement_is_the_mean_of_the_positive_part() -> None:
    draws = M[:, None] + S[:, None] * np.random.default_rng(1).standard_normal((50, 200_000))
    brute = np.maximum(draws - 0.3, 0).mean(1)
    assert np.allclose(acquire.expected_improvement(M, S, 0.3), brute, atol=0.01)


def test_tau_at_zero_is_the_textbook_value() -> None:
    assert acquire.tau(np.array(0.0)) == pytest.approx(1 / np.sqrt(2 * np.pi))


def test_probability_of_improvement_and_its_complement() -> None:
    assert acquire.probability_of_improvement(1.0, 1.0, 0.0) == pytest.approx(0.8413447, abs=1e-6)
    assert np.allclose(acquire.probability_above(M, S, 0.1) + acquire.probability_below(M, S, 0.1), 1.0)


def test_without_spread_the_limits_are_taken() -> None:
    zero = np.zeros(2)
    mean = np.array([0.2, -0.2])
    assert acquire.expected_improvement(mean, zero, 0.0).tolist() == [0.2, 0.0]
    assert acquire.probability_of_improvement(mean, zero, 0.0).tolist() == [1.0, 0.0]


def test_nothing_overflows_far_from_the_incumbent() -> None:
    values = acquire.expected_improvement(np.array([-1e6, 1e6]), np.full(2, 1e-9), 0.0)
    assert values.tolist() == [0.0, pytest.approx(1e6)]


def test_the_upper_bound_uses_the_papers_beta() -> None:
    assert acquire.ucb_beta(8, 3, 0.1) == pytest.approx(np.log(8 * 9 / 0.1))
    assert acquire.upper_confidence_bound(0.5, 0.2, 4.0) == pytest.approx(0.9)


def test_constraints_multiply() -> None:
    plain = acquire.expected_improvement(M, S, 0.0)
    assert np.allclose(acquire.constrained_expected_improvement(M, S, 0.0, 0.5, S * 0 + 0.5), plain / 4)


def test_strange_costs_have_a_meaning() -> None:
    rate = acquire.per_cost(np.ones(5), np.array([2.0, 0.0, np.inf, np.nan, -1.0]))
    assert rate.tolist() == [0.5, pytest.approx(1e9), 0.0, 1.0, pytest.approx(1e9)]


def test_torch_gives_the_same_numbers() -> None:
    for function in (acquire.expected_improvement, acquire.probability_of_improvement):
        assert np.allclose(function(torch.tensor(M), torch.tensor(S), 0.3).numpy(), function(M, S, 0.3))
    costs = np.array([2.0, 0.0, np.inf, np.nan])
    assert np.allclose(acquire.usable_cost(torch.tensor(costs)).numpy(), acquire.usable_cost(costs))
