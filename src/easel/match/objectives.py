"""What networks minimise, for each task."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from easel.match.device_data import Batch
from easel.match.zoo.recovery import Critic


class ClassObjective:
    """Cross entropy with a little label smoothing; target `y: (n,)`."""

    def loss(self, network: nn.Module, batch: Batch, target: Batch, *, training: bool) -> Tensor:
        smoothing = 0.05 if training else 0.0
        return functional.cross_entropy(network(**batch).float(), target["y"], label_smoothing=smoothing)


class ValueObjective:
    """Squared error on standardised values; target `y: (n, width)`."""

    def loss(self, network: nn.Module, batch: Batch, target: Batch, *, training: bool) -> Tensor:
        return functional.mse_loss(network(**batch).float(), target["y"])


class PictureObjective:
    """Absolute plus squared error per pixel; target `y: (n, c, h, w)`."""

    def loss(self, network: nn.Module, batch: Batch, target: Batch, *, training: bool) -> Tensor:
        made = network(**batch).float()
        return functional.l1_loss(made, target["y"]) + functional.mse_loss(made, target["y"])


class AdversarialObjective(nn.Module):
    """pix2pix: the picture objective plus 1 % of a critic's disapproval; the critic learns on the way."""

    def __init__(self, critic: Critic, lr: float) -> None:
        super().__init__()
        self.critic = critic
        self.optimiser = torch.optim.AdamW(critic.parameters(), lr=lr, betas=(0.5, 0.999))

    def loss(self, network: nn.Module, batch: Batch, target: Batch, *, training: bool) -> Tensor:
        made = network(**batch).float()
        plain = functional.l1_loss(made, target["y"]) + functional.mse_loss(made, target["y"])
        if not training:
            return plain
        real, fake = self.critic(batch["x"], target["y"]), self.critic(batch["x"], made.detach())
        judged = functional.softplus(-real).mean() + functional.softplus(fake).mean()
        self.optimiser.zero_grad(set_to_none=True)
        torch.autograd.backward(judged)
        self.optimiser.step()
        return plain + 0.01 * functional.softplus(-self.critic(batch["x"], made)).mean()


class SequenceObjective:
    """Squared error on the steps of the true series, and whether it goes on; target `(n, c + 1, length)`."""

    def loss(self, network: nn.Module, batch: Batch, target: Batch, *, training: bool) -> Tensor:
        truth = target["y"]
        made = network(**batch, teacher=truth) if training else network(**batch)
        going = truth[:, -1]
        error = (((made[:, :-1] - truth[:, :-1]) ** 2).mean(1) * going).sum() / going.sum().clamp(min=1.0)
        ends = functional.binary_cross_entropy_with_logits(made[:, -1], going)
        total: Tensor = error + 0.1 * ends
        return total


class BitObjective:
    """Binary cross entropy on every bit; target `y: (n, length)`."""

    def loss(self, network: nn.Module, batch: Batch, target: Batch, *, training: bool) -> Tensor:
        return functional.binary_cross_entropy_with_logits(network(**batch).float(), target["y"])
