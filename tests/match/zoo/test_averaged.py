"""The moving average of a network's weights: what it answers with, in checkpoints and in recorded steps alike."""

from __future__ import annotations

import pytest
import torch

from easel.match.augment import augmentation
from easel.match.objectives import MixedObjective
from easel.match.zoo.averaged import Averaged, resnet9
from easel.match.zoo.canvas import Canvas


def network(views: str = "one") -> Averaged:
    torch.manual_seed(0)
    found = resnet9(Canvas(1, 12, 12), 4, 0.125, views)
    assert isinstance(found, Averaged)
    return found


def test_the_average_follows_and_answers() -> None:
    net, x = network(), torch.randn(8, 1, 12, 12)
    net.eval()
    before = net(x)
    with torch.no_grad():
        for one in net.now.parameters():
            one.add_(0.1)
    torch.testing.assert_close(net(x), before)
    net.train()
    net(x)
    net.eval()
    assert not torch.allclose(net(x), before)
    assert net.average.training is False
    assert not any(one.requires_grad for one in net.average.parameters())


def test_the_views_of_a_picture_are_averaged() -> None:
    x = torch.randn(3, 1, 12, 12)
    mirrored = network("mirrored").eval()
    torch.testing.assert_close(mirrored(x), mirrored(x.flip(3)), rtol=1e-4, atol=1e-5)
    shifted = network("shifted").eval()
    assert shifted(x).shape == (3, 4)
    with pytest.raises(ValueError, match="unknown views"):
        network("upside down")


@pytest.mark.parametrize("how", ["mixup", "cutmix"])
def test_mixed_pictures_count_for_both_of_their_classes(how: str) -> None:
    torch.manual_seed(0)
    seen: list[torch.Tensor] = []

    class Watch(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.append(x)
            return torch.zeros(len(x), 2, requires_grad=True)

    x = torch.cat([torch.zeros(32, 1, 8, 8), torch.ones(32, 1, 8, 8)])
    y = torch.cat([torch.zeros(32), torch.ones(32)]).long()
    loss = MixedObjective(how).loss(Watch(), {"x": x}, {"y": y}, training=True)
    assert torch.isfinite(loss)
    assert not torch.equal(seen[0], x)
    assert (seen[0] - x).abs().amax((1, 2, 3)).eq(0).any()
    MixedObjective(how).loss(Watch(), {"x": x}, {"y": y}, training=False)
    assert torch.equal(seen[1], x)


def test_warped_pictures_keep_their_shape_and_differ() -> None:
    x = torch.rand(5, 1, 12, 12)
    made = augmentation("warp")({"x": x})["x"]
    assert made.shape == x.shape
    assert not torch.allclose(made, x)
