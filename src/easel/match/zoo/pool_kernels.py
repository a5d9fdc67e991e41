"""GPU kernels for max pooling, forth and back. Tensors are channels-last, as in `fused_kernels`."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def pool(
    x, y, chosen, rows, channels, height, width, out_height, out_width,
    SIDE: tl.constexpr, STRIDE: tl.constexpr, PAD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """The largest of each window, and which one of the window that is: the first of several."""
    channels = tl.multiple_of(channels, 8)
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    r = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    inside = (r < rows)[:, None] & (c < channels)[None, :]
    across = (r % out_width) * STRIDE - PAD
    down = ((r // out_width) % out_height) * STRIDE - PAD
    picture = (r // (out_width * out_height)).to(tl.int64) * height
    most = tl.full((BLOCK_M, BLOCK_C), float("-inf"), tl.float32)
    which = tl.zeros((BLOCK_M, BLOCK_C), tl.int32)
    for i in tl.static_range(SIDE):
        for j in tl.static_range(SIDE):
            h, w = down + i, across + j
            m = ((h >= 0) & (h < height) & (w >= 0) & (w < width))[:, None] & inside
            place = ((picture + h) * width + w)[:, None] * channels + c[None, :]
            v = tl.load(x + place, mask=m, other=float("-inf")).to(tl.float32)
            more = (v > most) | (v != v)
            most = tl.where(more, v, most)
            which = tl.where(more, i * SIDE + j, which)
    place = r.to(tl.int64)[:, None] * channels + c[None, :]
    tl.store(y + place, most.to(y.dtype.element_ty), mask=inside)
    tl.store(chosen + place, which.to(tl.uint8), mask=inside)


@triton.jit
def pool_back(
    dy, chosen, dx, rows, channels, height, width, out_height, out_width, stride,
    SIDE: tl.constexpr, STRIDE: tl.constexpr, PAD: tl.constexpr, REACH: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """Each pixel adds up what the windows that chose it were given; a pixel lies in at most `REACH`² windows."""
    channels = tl.multiple_of(channels, 8)
    stride = tl.multiple_of(stride, 8)
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    r = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    inside = (r < rows)[:, None] & (c < channels)[None, :]
    across = r % width + PAD
    down = (r // width) % height + PAD
    picture = (r // (width * height)).to(tl.int64) * out_height
    total = tl.zeros((BLOCK_M, BLOCK_C), tl.float32)
    for i in tl.static_range(REACH):
        for j in tl.static_range(REACH):
            h, w = down // STRIDE - i, across // STRIDE - j
            in_h, in_w = down - h * STRIDE, across - w * STRIDE
            fits = (h >= 0) & (h < out_height) & (in_h < SIDE) & (w >= 0) & (w < out_width) & (in_w < SIDE)
            m = fits[:, None] & inside
            window = (picture + h) * out_width + w
            which = tl.load(chosen + window[:, None] * channels + c[None, :], mask=m, other=255).to(tl.int32)
            g = tl.load(dy + window[:, None] * stride + c[None, :], mask=m, other=0.0).to(tl.float32)
            total += tl.where(which == (in_h * SIDE + in_w)[:, None], g, 0.0)
    tl.store(dx + r.to(tl.int64)[:, None] * channels + c[None, :], total.to(dx.dtype.element_ty), mask=inside)
