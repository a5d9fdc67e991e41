"""What networks minimise, for each task."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch._C._functorch import is_batchedtensor
from torch.nn import functional

from easel.match.device_data import Batch
from easel.match.zoo.gpu_layers import loss_kernel
from easel.match.zoo.recovery import Critic

MOST_CLASSES = 1024
"""So many a kernel holds at once."""


def smoothed_loss(answers: Tensor, y: Tensor, smoothing: float) -> Tensor:
    """Returns how far answers are from smoothed classes: their cross entropy less the least that it can be.

    By it an epoch is chosen of a training that minimises the same: a network that learns not to be too sure looks ever
    worse by a loss that asks it to be.
    """
    return class_losses(answers, y, smoothing).mean() - _least_loss(answers.shape[1], smoothing)


def class_losses(answers: Tensor, y: Tensor, smoothing: float) -> Tensor:
    """Returns the cross entropy of each answer `(n, classes)` with its smoothed class; on a GPU by one kernel."""
    if (
        answers.is_cuda
        and answers.dtype == torch.float32
        and answers.shape[1] <= MOST_CLASSES
        and not is_batchedtensor(answers)
        and (fused := loss_kernel()) is not None
    ):
        return fused(answers, y, smoothing)
    return functional.cross_entropy(answers, y, label_smoothing=smoothing, reduction="none")


def _least_loss(classes: int, smoothing: float) -> float:
    """Returns the entropy of a smoothed class."""
    other = smoothing / classes
    own = 1 - smoothing + other
    return -sum(share * math.log(share) for share in (own, *[other] * (classes - 1)) if share > 0)


class ClassObjective:
    """Cross entropy with a little label smoothing; target `y: (n,)`."""

    def __init__(self, smoothing: float = 0.05) -> None:
        self._smoothing = smoothing

    def loss(self, network: nn.Module, batch: Batch, target: Batch, *, training: bool) -> Tensor:
        return self.each(network(**batch).float(), target["y"], training=training).mean()

    def each(self, answers: Tensor, y: Tensor, *, training: bool) -> Tensor:
        """Returns the loss of each answer `(n,)`."""
        lost = class_losses(answers, y, self._smoothing)
        return lost if training else lost - _least_loss(answers.shape[1], self._smoothing)


class MixedObjective:
    """Cross entropy on pictures that are each mixed with another one, to the share that counts in the loss.

    `mixup` lays one over the other, `cutmix` puts a rectangle of one into the other; half of the batch stays as it is.
    """

    def __init__(self, how: str, smoothing: float = 0.1) -> None:
        self._how, self._smoothing = how, smoothing

    def loss(self, network: nn.Module, batch: Batch, target: Batch, *, training: bool) -> Tensor:
        y = target["y"]
        if not training:
            return smoothed_loss(network(**batch).float(), y, self._smoothing)
        x = batch["x"]
        n, device = len(x), x.device
        order = torch.randperm(n, device=device)
        share = 0.5 + 0.5 * torch.rand(n, device=device)
        share = torch.where(torch.rand(n, device=device) < 0.5, share, torch.ones_like(share))
        if self._how == "mixup":
            mine = share.view(-1, 1, 1, 1).to(x.dtype)
            x = mine * x + (1 - mine) * x[order]
        else:
            inside = _rectangles(1 - share, x.shape[2], x.shape[3])
            share = 1 - inside.float().mean((1, 2))
            x = torch.where(inside.unsqueeze(1), x[order], x)
        made = network(**{**batch, "x": x}).float()
        own, other = (
            functional.cross_entropy(made, wanted, label_smoothing=self._smoothing, reduction="none")
            for wanted in (y, y[order])
        )
        return (share * own + (1 - share) * other).mean()


def _rectangles(area: Tensor, height: int, width: int) -> Tensor:
    """`(n, height, width)`: true inside a rectangle somewhere that covers about `area` `(n,)` of each picture."""
    n, device = len(area), area.device
    half = (area.sqrt() / 2).view(-1, 1)
    down = torch.rand(n, 1, device=device)
    across = torch.rand(n, 1, device=device)
    rows = (torch.arange(height, device=device) + 0.5) / height
    columns = (torch.arange(width, device=device) + 0.5) / width
    return ((rows - down).abs() < half).unsqueeze(2) & ((columns - across).abs() < half).unsqueeze(1)


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
