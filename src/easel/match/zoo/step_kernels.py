"""GPU kernels for the rest of a small network's step: the loss of classes, and AdamW over several networks' weights."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def class_loss(
    answers, y, lost, gradient, rows, classes, smoothing, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr
):
    """The smoothed cross entropy of each row, and its gradient."""
    r = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)
    c = tl.arange(0, BLOCK_C)
    m = (r < rows)[:, None] & (c < classes)[None, :]
    v = tl.load(answers + r[:, None] * classes + c[None, :], mask=m, other=float("-inf"))
    most = tl.max(v, 1)
    power = tl.where(m, tl.exp(v - most[:, None]), 0.0)
    total = tl.sum(power, 1)
    own = tl.load(y + r, mask=r < rows, other=0)
    wanted = tl.where(c[None, :] == own[:, None], 1.0 - smoothing, 0.0) + smoothing / classes
    below = tl.where(m, wanted * (v - most[:, None]), 0.0)
    tl.store(lost + r, tl.log(total) - tl.sum(below, 1), mask=r < rows)
    d = power / total[:, None] - wanted
    tl.store(gradient + r[:, None] * classes + c[None, :], d, mask=m)


@triton.jit
def adam(
    rows, mean, square, gradients, norms, factors, places, read, half, count, members, clip, decay1, decay2, eps,
    HALF: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A step of AdamW for one part of one network, whose gradients are clipped together; layers read copies."""
    member = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < count
    at = member * count + i
    shrink = tl.minimum(clip / (tl.load(norms + member) + 1e-6), 1.0)
    left = tl.load(factors + member)
    far = tl.load(factors + members + member)
    squares = tl.load(factors + 2 * members + member)
    g = tl.load(gradients + at, mask=m, other=0.0) * shrink
    a = tl.load(mean + at, mask=m, other=0.0)
    a += (g - a) * (1.0 - decay1)
    b = tl.load(square + at, mask=m, other=0.0) * decay2 + g * g * (1.0 - decay2)
    w = tl.load(rows + at, mask=m, other=0.0) * left + far * a / (tl.sqrt(b) * squares + eps)
    tl.store(mean + at, a, mask=m)
    tl.store(square + at, b, mask=m)
    tl.store(rows + at, w, mask=m)
    place = tl.load(places + at, mask=m, other=0)
    tl.store(read + place, w, mask=m)
    if HALF:
        tl.store(half + place, w.to(half.dtype.element_ty), mask=m)
