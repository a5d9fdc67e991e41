"""Several small networks as one compute what each computes alone; layers made for GPUs are the plain ones elsewhere."""

from __future__ import annotations

import copy
import importlib.util
import sys

import pytest
import torch
from torch import nn
from torch.nn import functional

from easel.match import family, objectives
from easel.match.family import EstimatorFamily, NetworkFamily
from easel.match.loop import Schedule
from easel.match.objectives import ClassObjective, MixedObjective, smoothed_loss
from easel.match.packed_member import PackedMember
from easel.match.packed_merged import _Weights, merges
from easel.match.registry import all_families
from easel.match.zoo import gpu_layers
from easel.match.zoo.averaged import resnet9
from easel.match.zoo.canvas import Canvas
from easel.match.zoo.gpu_layers import MaxPool, SmallConv, convolution
from easel.match.zoo.images import build_image_network
from easel.match.zoo.merged import MergedForward, mergeable
from easel.match.zoo.strided_conv import StridedConv, folded_conv

CPU = torch.device("cpu")


def three() -> list[nn.Module]:
    torch.manual_seed(0)
    made = [build_image_network("convnet", (3, 12, 12), 4, 0.25) for _ in range(3)]
    for network in made:
        for part in network.modules():
            if isinstance(part, nn.Dropout):
                part.p = 0.0  # chance would be another one
            if isinstance(part, nn.BatchNorm2d):
                nn.init.uniform_(part.weight, 0.5, 1.5)
                nn.init.uniform_(part.bias, -0.5, 0.5)
    return made


@pytest.mark.parametrize("training", [True, False])
def test_merged_networks_answer_as_each_does_alone(training: bool) -> None:
    networks = [one.train(training) for one in three()]
    weights = _Weights(networks, CPU, half=False)
    buffers = {
        name: torch.stack([dict(one.named_buffers())[name] for one in networks])
        for name, _ in networks[0].named_buffers()
    }
    x = torch.randn(3 * 5, 3, 12, 12)
    together = MergedForward(copy.deepcopy(networks[0]).to("meta"), 3, buffers)(weights.leaves, x)
    alone = torch.stack([one(x[5 * i : 5 * i + 5]) for i, one in enumerate(networks)])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-4)
    for name, found in buffers.items():
        if "running" in name:
            kept = torch.stack([dict(one.named_buffers())[name] for one in networks])
            torch.testing.assert_close(found, kept, rtol=1e-4, atol=1e-5)


def test_merged_networks_have_the_gradients_of_each_alone() -> None:
    networks = three()
    weights = _Weights(networks, CPU, half=False)
    buffers = {
        name: torch.stack([dict(one.named_buffers())[name] for one in networks])
        for name, _ in networks[0].named_buffers()
    }
    x = torch.randn(3 * 5, 3, 12, 12)
    together = MergedForward(copy.deepcopy(networks[0]).to("meta"), 3, buffers)
    weights.backward(together(weights.leaves, x).square().mean((1, 2)))
    for i, network in enumerate(networks):
        torch.autograd.backward(network(x[5 * i : 5 * i + 5]).square().mean())
        mine = weights.taken(weights.gradient_rows[i])
        for name, one in network.named_parameters():
            torch.testing.assert_close(mine[name], one.grad, rtol=1e-3, atol=1e-5)


def test_weights_go_into_rows_and_come_back_as_they_were() -> None:
    networks = three()
    weights = _Weights(networks, CPU, half=False)
    for row, network in zip(weights.rows, networks, strict=True):
        torch.testing.assert_close(
            weights.taken(row), {name: one.detach() for name, one in network.named_parameters()}
        )


def test_only_small_networks_of_known_layers_are_merged() -> None:
    small = build_image_network("convnet", (1, 28, 28), 10, 0.25)
    assert mergeable(small)
    assert not mergeable(build_image_network("convnet", (1, 28, 28), 10, 1.0))
    assert not mergeable(build_image_network("squeezenet", (3, 32, 32), 10, 0.25))
    assert not mergeable(resnet9(Canvas(1, 28, 28), 10, 0.25))


def test_a_loss_that_changes_the_pictures_keeps_networks_apart() -> None:
    member = PackedMember(three()[0], torch.arange(4), torch.arange(4), Schedule(1, 1e-3))
    assert merges([member], ClassObjective(), CPU)
    assert not merges([member], MixedObjective("mixup"), CPU)


@pytest.mark.parametrize(("side", "step", "high"), [(11, 4, 64), (7, 2, 31), (3, 2, 20), (5, 4, 33)])
def test_a_folded_convolution_is_the_strided_one(side: int, step: int, high: int) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 3, high, high + 1, dtype=torch.float64)
    weight = torch.randn(4, 3, side, side, dtype=torch.float64)
    bias = torch.randn(4, dtype=torch.float64)
    wanted = functional.conv2d(x, weight, bias, stride=step, padding=side // 2)
    torch.testing.assert_close(folded_conv(x, weight, bias, step, side // 2), wanted)


def test_layers_for_gpus_are_the_plain_ones_on_a_cpu() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 8, 9, 9)
    torch.testing.assert_close(MaxPool(3, 2, 1)(x), functional.max_pool2d(x, 3, 2, 1))
    small = convolution(8, 16, 3, 1)
    assert isinstance(small, SmallConv)
    torch.testing.assert_close(small(x), functional.conv2d(x, small.weight, padding=1))
    strided = convolution(3, 16, 7, 2)
    assert type(strided) is StridedConv
    assert strided(torch.randn(1, 3, 64, 64)).shape == (1, 16, 32, 32)
    assert type(convolution(64, 64, 3, 1)) is StridedConv


def test_layers_without_kernels_are_the_plain_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "easel.match.zoo.fused_pool", None)
    monkeypatch.setitem(sys.modules, "easel.match.zoo.small_conv", None)
    for tried in (gpu_layers._tried_pool_kernels, gpu_layers._tried_conv_kernels):
        tried.cache_clear()
        assert tried() is None
        tried.cache_clear()


def test_the_smoothed_loss_is_least_where_an_answer_is_as_sure_as_smoothing_asks() -> None:
    y = torch.tensor([0])
    wanted = torch.tensor([[0.925, 0.025, 0.025, 0.025]]).log()
    assert abs(float(smoothed_loss(wanted, y, 0.1))) < 1e-6
    surer = torch.tensor([[0.999, 0.0004, 0.0003, 0.0003]]).log()
    assert float(smoothed_loss(surer, y, 0.1)) > 0.1
    assert float(smoothed_loss(surer, y, 0.0)) < 0.002


@pytest.mark.parametrize("objective", [ClassObjective(0.1), MixedObjective("mixup", 0.1)])
def test_an_epoch_is_chosen_by_what_training_minimises(objective: objectives.ClassObjective) -> None:
    class Sure(nn.Module):
        def __init__(self, share: float) -> None:
            super().__init__()
            self._answer = torch.tensor([[share, *[(1 - share) / 3] * 3]]).log()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self._answer.expand(len(x), 4)

    batch, target = {"x": torch.zeros(2, 1, 4, 4)}, {"y": torch.tensor([0, 0])}
    fitting, too_sure = (
        float(objective.loss(Sure(share), batch, target, training=False)) for share in (0.925, 0.9999)
    )
    assert fitting < too_sure


def test_without_torch_networks_are_not_proposed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        family, "find_spec", lambda name: None if name == "torch" else importlib.util.find_spec(name)
    )
    kinds = [one for one in all_families().values() if isinstance(one, NetworkFamily)]
    assert len(kinds) > 10
    assert not any(one.installed for one in kinds)
    assert any(one.installed for one in all_families().values() if isinstance(one, EstimatorFamily))
