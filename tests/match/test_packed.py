"""Several networks trained as one program are as good as alone, and do not touch each other."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.match import worlds
from tests.match.test_train import CONDITIONS, candidate_of, run

from easel.match import fit_rounds
from easel.match.device_data import Data, batches
from easel.match.loop import Diverged, Schedule, TrainingRun, batch_for, fit
from easel.match.objectives import ClassObjective
from easel.match.packed import PackedMember, fit_together
from easel.match.zoo.images import build_image_network


@pytest.fixture
def pictures() -> Data:
    torch.manual_seed(0)
    y = torch.randint(4, (240,))
    x = 0.5 * torch.randn(240, 1, 12, 12)
    x[torch.arange(240), 0, 3 * y] += 1.5
    return Data({"x": x}, {"y": y})


def members(rates: tuple[float, ...], epochs: int = 4) -> list[PackedMember]:
    rows = torch.arange(240)
    return [
        PackedMember(
            build_image_network("convnet", (1, 12, 12), 4, 0.25),
            rows[:200],
            rows[200:],
            Schedule(epochs, rate),
        )
        for rate in rates
    ]


def test_a_member_that_diverges_leaves_the_others_as_they_were(pictures: Data) -> None:
    torch.manual_seed(1)
    three = members((1e-2, 1e30, 1e-2))
    runs = fit_together(three, pictures, ClassObjective(), seed=0, out_of_time=lambda: False)
    assert isinstance(runs[1], Diverged)
    for good in (runs[0], runs[2]):
        assert isinstance(good, TrainingRun)
        assert good.best_loss < 0.2
    assert all(torch.isfinite(one).all() for one in three[0].network.state_dict().values())


def test_together_is_as_good_as_alone(pictures: Data) -> None:
    torch.manual_seed(1)
    (member,) = members((1e-2,), epochs=6)
    alone = copy.deepcopy(member.network)
    (packed,) = fit_together([member], pictures, ClassObjective(), seed=3, out_of_time=lambda: False)
    assert isinstance(packed, TrainingRun)
    train, validate = pictures.only(member.train), pictures.only(member.validate)
    lone = fit(alone, train, validate, ClassObjective(), Schedule(6, 1e-2), seed=3, out_of_time=lambda: False)
    np.testing.assert_allclose(packed.curve[0], lone.curve[0], rtol=0.05)
    assert packed.best_loss < 0.2


def test_out_of_time_ends_all_members_with_what_they_have(pictures: Data) -> None:
    runs = fit_together(members((1e-2, 1e-3)), pictures, ClassObjective(), seed=0, out_of_time=lambda: True)
    assert [one.stopped for one in runs if isinstance(one, TrainingRun)] == ["out of time"] * 2


def test_a_trial_with_packed_rounds_validates_every_example(monkeypatch: pytest.MonkeyPatch) -> None:
    world = worlds.pictures()
    monkeypatch.setattr(fit_rounds, "PACKED_DEVICES", ("cpu",))
    trained = run(world, candidate_of(world, "convnet"), replace(CONDITIONS, epochs=2))
    assert trained.measurement.validated_on == len(world[1])


def test_batches_grow_on_a_gpu_only_and_never_past_a_quarter_of_the_examples() -> None:
    cpu, gpu = torch.device("cpu"), torch.device("cuda", 0)
    assert [batch_for(64, n, cpu) for n in (6, 100, 10**6)] == [2, 25, 64]
    assert [batch_for(64, n, gpu) for n in (6, 100, 20_000, 10**6)] == [2, 25, 512, 1024]


def test_batches_come_in_order_from_the_host(pictures: Data) -> None:
    places = torch.arange(12).view(3, 4)
    found = [targets["y"].tolist() for _, targets in batches(pictures, places, torch.device("cpu"))]
    assert [one for row in found for one in row] == pictures.targets["y"][:12].tolist()
