"""The loss of classes and AdamW as one GPU kernel each. Needs Triton."""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor

from easel.match.zoo import step_kernels


class _ClassLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, answers: Tensor, y: Tensor, smoothing: float) -> Tensor:
        rows, classes = answers.shape
        lost = torch.empty(rows, device=answers.device)
        gradient = torch.empty(rows, classes, device=answers.device)
        wide = max(2, triton.next_power_of_2(classes))
        high = max(1, 1024 // wide)
        step_kernels.class_loss[(-(-rows // high),)](
            answers, y, lost, gradient, rows, classes, smoothing, BLOCK_R=high, BLOCK_C=wide
        )
        ctx.save_for_backward(gradient)
        return lost

    @staticmethod
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = ctx.saved_tensors
        return gradient * given.unsqueeze(1), None, None


def class_loss(answers: Tensor, y: Tensor, smoothing: float) -> Tensor:
    """Returns the smoothed cross entropy of each of the answers `(n, classes)` with `y` `(n,)`."""
    found: Tensor = _ClassLoss.apply(answers.contiguous(), y, smoothing)  # type: ignore[no-untyped-call]
    return found


def adam_step(
    rows: Tensor,
    moments: tuple[Tensor, Tensor],
    gradients: Tensor,
    factors: Tensor,
    copies: tuple[Tensor, Tensor, Tensor | None],
    settings: tuple[float, tuple[float, float], float],
) -> None:
    """Takes a step of AdamW for each row `(members, numbers)` and writes where layers read.

    `copies`: the place of each number there, exact ones and halves. `factors` `(3, members, 1)`: what is left of
    the weights, how far they go, what squares are multiplied by. `settings`: the largest norm of a row's gradients, the
    decay of both moments, and the small number beside the divisor."""
    members, count = rows.shape
    clip, (first, second), eps = settings
    places, read, half = copies
    norms = torch.linalg.vector_norm(gradients, dim=1)
    step_kernels.adam[(-(-count // 512), members)](
        rows, *moments, gradients, norms, factors, places, read, read if half is None else half,
        count, members, clip, first, second, eps, HALF=half is not None, BLOCK=512,
    )  # fmt: skip
