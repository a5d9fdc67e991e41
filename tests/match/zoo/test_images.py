"""Every image network of the zoo takes any picture and can learn from it."""

from __future__ import annotations

import pytest
import torch

from easel.match.zoo.images import IMAGE_NETWORKS, build_image_network

SHAPES = [(1, 8, 8), (3, 1, 1), (1, 28, 28), (3, 5, 40), (3, 33, 31), (4, 64, 64)]


@pytest.mark.parametrize("name", IMAGE_NETWORKS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_network_adapts_to_the_picture_size(name: str, shape: tuple[int, int, int]) -> None:
    network = build_image_network(name, shape, outputs=7, width=0.125)
    assert network.eval()(torch.zeros(2, *shape)).shape == (2, 7)


@pytest.mark.parametrize("name", IMAGE_NETWORKS)
def test_width_scales_the_number_of_weights(name: str) -> None:
    def weights(width: float) -> int:
        return sum(p.numel() for p in build_image_network(name, (3, 32, 32), 10, width).parameters())

    assert weights(0.25) < 0.3 * weights(1.0)


@pytest.mark.parametrize("name", IMAGE_NETWORKS)
def test_a_network_fits_two_pictures_that_differ(name: str) -> None:
    torch.manual_seed(0)
    x = torch.stack([torch.zeros(1, 16, 16), torch.ones(1, 16, 16)] * 4)
    y = torch.tensor([0, 1] * 4)
    network = build_image_network(name, (1, 16, 16), outputs=2, width=0.25)
    for part in network.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-3)
    first = loss = torch.nn.functional.cross_entropy(network(x), y)
    for _ in range(15):
        loss = torch.nn.functional.cross_entropy(network(x), y)
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
    assert loss.item() < 0.5 * first.item()
