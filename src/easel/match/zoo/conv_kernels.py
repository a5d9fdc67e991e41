"""GPU kernels for 3 × 3 convolutions of few channels, forth and back. Tensors are channels-last, as in `fused_kernels`.

A convolution is a matrix product over 9 · channels numbers for each pixel; a library's kernels are made for larger.
Several networks of one shape are the second side of a grid: each has `rows` of its own and weights `apart` from those
of the next, in the order output, place, input.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _window(x, r, inside, k, height, width, CHANNELS: tl.constexpr, FLIP: tl.constexpr):
    """What lies at the `k`-th place of the window of each row: place by place, channel by channel."""
    spot, c = k // CHANNELS, k % CHANNELS
    down, across = spot // 3 - 1, spot % 3 - 1
    if FLIP:
        down, across = -down, -across
    h = ((r // width) % height)[:, None] + down[None, :]
    w = (r % width)[:, None] + across[None, :]
    m = inside[:, None] & (k < 9 * CHANNELS)[None, :] & (h >= 0) & (h < height) & (w >= 0) & (w < width)
    place = (r[:, None] + (down * width + across)[None, :]) * CHANNELS + c[None, :]
    return tl.load(x + place, mask=m, other=0.0)


@triton.jit
def conv(
    x, weight, y, rows, height, width, apart, by_channel, by_spot, by_output,
    CHANNELS: tl.constexpr, OUTPUTS: tl.constexpr, FLIP: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """`y` from `x`; with `FLIP`, and channels and outputs exchanged, the gradient of `x` from that of `y`."""
    member = tl.program_id(1)
    x += member.to(tl.int64) * rows * CHANNELS
    y += member.to(tl.int64) * rows * OUTPUTS
    weight += member * apart
    r = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.arange(0, BLOCK_N)
    inside = r < rows
    found = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in tl.static_range(0, 9 * CHANNELS, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        v = _window(x, r, inside, k, height, width, CHANNELS, FLIP)
        place = (k % CHANNELS) * by_channel + (k // CHANNELS) * by_spot
        m = (k < 9 * CHANNELS)[:, None] & (n < OUTPUTS)[None, :]
        g = tl.load(weight + place[:, None] + n[None, :] * by_output, mask=m, other=0.0)
        found = tl.dot(v, g, found)
    m = inside[:, None] & (n < OUTPUTS)[None, :]
    tl.store(y + r[:, None] * OUTPUTS + n[None, :], found.to(y.dtype.element_ty), mask=m)


@triton.jit
def conv_weight(
    dy, x, partial, rows, height, width, chunk,
    CHANNELS: tl.constexpr, OUTPUTS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """The gradient of the weights over the rows of one program."""
    part, parts, member = tl.program_id(0), tl.num_programs(0), tl.program_id(1)
    x += member.to(tl.int64) * rows * CHANNELS
    dy += member.to(tl.int64) * rows * OUTPUTS
    partial += (member * parts + part) * OUTPUTS * 9 * CHANNELS
    n = tl.arange(0, BLOCK_N)
    k = tl.program_id(2) * BLOCK_K + tl.arange(0, BLOCK_K)
    found = tl.zeros((BLOCK_N, BLOCK_K), tl.float32)
    for start in range(part * chunk, tl.minimum((part + 1) * chunk, rows), BLOCK_M):
        r = start + tl.arange(0, BLOCK_M)
        inside = r < rows
        m = inside[None, :] & (n < OUTPUTS)[:, None]
        g = tl.load(dy + r[None, :] * OUTPUTS + n[:, None], mask=m, other=0.0)
        v = _window(x, r, inside, k, height, width, CHANNELS, False)
        found = tl.dot(g, v, found)
    m = (n < OUTPUTS)[:, None] & (k < 9 * CHANNELS)[None, :]
    tl.store(partial + n[:, None] * 9 * CHANNELS + k[None, :], found, mask=m)


@triton.jit
def summed(partial, out, parts, count, BLOCK_P: tl.constexpr, BLOCK: tl.constexpr):
    """Sums of what the programs found, always in the same order."""
    member = tl.program_id(1)
    partial += member.to(tl.int64) * parts * count
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    found = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, parts, BLOCK_P):
        p = start + tl.arange(0, BLOCK_P)
        m = (p < parts)[:, None] & (i < count)[None, :]
        found += tl.sum(tl.load(partial + p[:, None] * count + i[None, :], mask=m, other=0.0), 0)
    tl.store(out + member * count + i, found.to(out.dtype.element_ty), mask=i < count)
