"""The small mathematics around training: scales, splits, metrics, MiniRocket."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from easel.match.metrics import balanced_accuracy, psnr, r_squared, ssim
from easel.match.normalise import NORMALISATIONS, f_k, fit_normalisation
from easel.match.split import FOLDS, SMALL, assign_folds, rounds
from easel.match.zoo.minirocket import KERNELS, MiniRocket


def test_the_papers_family_is_zero_at_both_ends_and_a_quarter_at_its_peak() -> None:
    for k in (0.25, 0.5, 1.0, 2.0):
        x = np.linspace(0, 1, 10_001)
        assert f_k(x, k)[[0, -1]] == pytest.approx([0.0, 0.0])
        assert f_k(x, k).max() == pytest.approx(0.25, abs=1e-4)
        assert x[f_k(x, k).argmax()] == pytest.approx(0.5 ** (1 / k), abs=1e-2)


@pytest.mark.parametrize("name", NORMALISATIONS)
def test_a_normalisation_gives_finite_numbers_for_gaps_constants_and_outliers(name: str) -> None:
    x = np.array([[1.0, 5.0], [np.nan, 5.0], [1e30, 5.0], [-3.0, 5.0]])
    scaled = fit_normalisation(name, x)(x)
    assert np.isfinite(scaled).all()


@given(st.lists(st.sampled_from("aab"), min_size=1, max_size=60))
def test_folds_are_even_within_every_class(labels: list[str]) -> None:
    folds = assign_folds(labels)
    for label in set(labels):
        counts = Counter(fold for fold, one in zip(folds, labels, strict=True) if one == label)
        assert max(counts.values()) - min(counts.get(f, 0) for f in range(FOLDS)) <= 1


def test_folds_given_earlier_are_continued() -> None:
    labels = list("abab" * 10)
    whole = assign_folds(labels)
    first = whole[:20]
    already = Counter(zip(labels[:20], first, strict=True))
    assert first + assign_folds(labels[20:], already) == whole


def test_few_examples_are_validated_in_every_fold_and_many_in_one() -> None:
    few = rounds(assign_folds(["x"] * 50))
    assert sorted(np.concatenate([r.validate for r in few])) == list(range(50))
    many = rounds(assign_folds(["x"] * SMALL))
    assert len(many) == 1
    assert len(many[0].validate) == SMALL // FOLDS
    assert not set(many[0].train) & set(many[0].validate)


def test_metrics_agree_with_their_definitions() -> None:
    truth = np.array([0, 0, 0, 1])
    always_zero = np.array([[1.0, 0.0]] * 4)
    assert balanced_accuracy(truth, always_zero) == 0.5
    y = np.array([[1.0], [2.0], [3.0]])
    assert r_squared(y, y) == 1.0
    assert r_squared(y, np.full_like(y, 2.0)) == pytest.approx(0.0)
    picture = np.random.default_rng(0).uniform(0, 1, (2, 1, 16, 16))
    assert ssim(picture, picture) == pytest.approx(1.0)
    assert ssim(picture, 1 - picture) < 0.0
    assert psnr(picture, picture + 0.1) == pytest.approx(-10 * np.log10(0.01 / np.ptp(picture) ** 2))


def test_minirocket_has_84_kernels_that_sum_to_zero() -> None:
    assert KERNELS.shape == (84, 9)
    assert (KERNELS.sum(1) == 0).all()


def test_minirockets_features_are_shares_of_positions_above_the_bias() -> None:
    x = torch.randn(3, 1, 20, generator=torch.Generator().manual_seed(0))
    mask = torch.ones(3, 20)
    rocket = MiniRocket(1, 20, 2, features=84)
    rocket.fit_biases(x, mask, torch.Generator().manual_seed(0))
    features = rocket.features(x, mask)
    padded = np.pad(x[1, 0].numpy(), 4)
    by_hand = [float(np.dot(KERNELS[4].numpy(), padded[t : t + 9])) for t in range(20)]
    share = np.mean(np.array(by_hand) > float(rocket.biases[4, 0]))
    assert features[1, 4].item() == pytest.approx(share)


def test_padding_does_not_change_minirockets_answer_much() -> None:
    x = torch.randn(1, 2, 30, generator=torch.Generator().manual_seed(0))
    rocket = MiniRocket(2, 40, 2)
    rocket.fit_biases(x, torch.ones(1, 30), torch.Generator().manual_seed(0))
    longer = torch.cat([x, torch.zeros(1, 2, 10)], dim=2)
    mask = torch.cat([torch.ones(1, 30), torch.zeros(1, 10)], dim=1)
    torch.testing.assert_close(rocket.features(longer, mask), rocket.features(x, torch.ones(1, 30)))
