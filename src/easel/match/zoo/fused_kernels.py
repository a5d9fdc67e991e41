"""GPU kernels for batch normalisation with an addition and ReLU, and for a bias with ReLU, forth and back.

Tensors are channels-last: a pixel is a row of `channels`, a multiple of eight; rows of a wider one lie `stride` apart.
Sums are made in float32 and in a fixed order, so that two runs agree. Several networks of one shape, whose examples lie
one after another, are the third side of a grid: each has `rows` of its own and weights `apart` from the next one's.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _added(partial, parts, stride, c, inside, BLOCK_C: tl.constexpr):
    """Sums of what the programs found, 64 of them at a time and always in the same order."""
    found = tl.zeros((BLOCK_C,), tl.float32)
    for start in range(0, parts, 64):
        p = start + tl.arange(0, 64)
        m = (p < parts)[:, None] & inside[None, :]
        found += tl.sum(
            tl.load(partial + p[:, None] * stride + c[None, :], mask=m, other=0.0, cache_modifier=".cg"), 0
        )
    return found


@triton.jit
def statistics(
    x, partial, counter, mean, rstd, running_mean, running_var, rows, channels, chunk, momentum, eps,
    BLOCK_M: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """Sums of the rows of one program; the last program of these channels to end makes mean and deviation of them."""
    channels = tl.multiple_of(channels, 8)
    part, parts, member = tl.program_id(0), tl.num_programs(0), tl.program_id(2)
    x += member.to(tl.int64) * rows * channels
    partial += member * parts * 2 * channels
    counter += member * tl.num_programs(1)
    mean += member * channels
    rstd += member * channels
    running_mean += member * channels
    running_var += member * channels
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    inside = c < channels
    # Differences to the first row: sums of squares would lose digits where the mean is far from nought.
    shift = tl.load(x + c, mask=inside, other=0.0).to(tl.float32)
    total = tl.zeros((BLOCK_C,), tl.float32)
    square = tl.zeros((BLOCK_C,), tl.float32)
    for start in range(part * chunk, tl.minimum((part + 1) * chunk, rows), BLOCK_M):
        r = start + tl.arange(0, BLOCK_M)
        m = (r < rows)[:, None] & inside[None, :]
        v = tl.load(x + r.to(tl.int64)[:, None] * channels + c[None, :], mask=m, other=0.0).to(tl.float32)
        v = tl.where(m, v - shift[None, :], 0.0)
        total += tl.sum(v, 0)
        square += tl.sum(v * v, 0)
    tl.store(partial + part * 2 * channels + c, total, mask=inside)
    tl.store(partial + part * 2 * channels + channels + c, square, mask=inside)
    tl.debug_barrier()
    ended = tl.atomic_add(counter + tl.program_id(1), 1, sem="acq_rel", scope="gpu")
    if ended == parts - 1:
        total = _added(partial, parts, 2 * channels, c, inside, BLOCK_C)
        square = _added(partial + channels, parts, 2 * channels, c, inside, BLOCK_C)
        off = total / rows
        variance = tl.maximum(square / rows - off * off, 0.0)
        tl.store(mean + c, shift + off, mask=inside)
        tl.store(rstd + c, 1.0 / tl.sqrt(variance + eps), mask=inside)
        before = tl.load(running_mean + c, mask=inside)
        tl.store(running_mean + c, before + momentum * (shift + off - before), mask=inside)
        before = tl.load(running_var + c, mask=inside)
        tl.store(
            running_var + c, before + momentum * (variance * (rows / (rows - 1.0)) - before), mask=inside
        )
        tl.store(counter + tl.program_id(1), 0)


@triton.jit
def apply(
    x, beside, y, mean, rstd, weight, bias, rows, channels, stride, apart,
    BLOCK_M: tl.constexpr, BLOCK_C: tl.constexpr, RELU: tl.constexpr, ADD: tl.constexpr,
):  # fmt: skip
    channels = tl.multiple_of(channels, 8)
    stride = tl.multiple_of(stride, 8)
    member = tl.program_id(2)
    x += member.to(tl.int64) * rows * channels
    beside += member.to(tl.int64) * rows * channels
    y += member.to(tl.int64) * rows * stride
    mean += member * channels
    rstd += member * channels
    weight += member * apart
    bias += member * apart
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    inside = c < channels
    scale = tl.load(weight + c, mask=inside, other=0.0) * tl.load(rstd + c, mask=inside, other=0.0)
    shift = tl.load(bias + c, mask=inside, other=0.0) - tl.load(mean + c, mask=inside, other=0.0) * scale
    r = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    m = (r < rows)[:, None] & inside[None, :]
    place = r.to(tl.int64)[:, None] * channels + c[None, :]
    v = tl.load(x + place, mask=m, other=0.0).to(tl.float32) * scale[None, :] + shift[None, :]
    if ADD:
        v += tl.load(beside + place, mask=m, other=0.0).to(tl.float32)
    if RELU:
        v = tl.maximum(v, 0.0)
    tl.store(y + r.to(tl.int64)[:, None] * stride + c[None, :], v.to(y.dtype.element_ty), mask=m)


@triton.jit
def sums_back(
    dy, x, y, partial, counter, mean, rstd, weight, bias, dweight, dbias, rows, channels, stride, apart, chunk,
    BLOCK_M: tl.constexpr, BLOCK_C: tl.constexpr, RELU: tl.constexpr, ADD: tl.constexpr,
):  # fmt: skip
    channels = tl.multiple_of(channels, 8)
    stride = tl.multiple_of(stride, 8)
    part, parts, member = tl.program_id(0), tl.num_programs(0), tl.program_id(2)
    dy += member.to(tl.int64) * rows * stride
    x += member.to(tl.int64) * rows * channels
    y += member.to(tl.int64) * rows * channels
    partial += member * parts * 2 * channels
    counter += member * tl.num_programs(1)
    mean += member * channels
    rstd += member * channels
    weight += member * apart
    bias += member * apart
    dweight += member * channels
    dbias += member * channels
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    inside = c < channels
    centre = tl.load(mean + c, mask=inside, other=0.0)
    spread = tl.load(rstd + c, mask=inside, other=0.0)
    w = tl.load(weight + c, mask=inside, other=0.0)
    b = tl.load(bias + c, mask=inside, other=0.0)
    plain = tl.zeros((BLOCK_C,), tl.float32)
    times = tl.zeros((BLOCK_C,), tl.float32)
    for start in range(part * chunk, tl.minimum((part + 1) * chunk, rows), BLOCK_M):
        r = start + tl.arange(0, BLOCK_M)
        m = (r < rows)[:, None] & inside[None, :]
        place = r.to(tl.int64)[:, None] * channels + c[None, :]
        g = tl.load(dy + r.to(tl.int64)[:, None] * stride + c[None, :], mask=m, other=0.0).to(tl.float32)
        v = tl.load(x + place, mask=m, other=0.0).to(tl.float32)
        v = tl.where(m, (v - centre[None, :]) * spread[None, :], 0.0)
        if RELU:
            if ADD:
                g = tl.where(tl.load(y + place, mask=m, other=0.0).to(tl.float32) > 0.0, g, 0.0)
            else:
                g = tl.where(v * w[None, :] + b[None, :] > 0.0, g, 0.0)
        plain += tl.sum(g, 0)
        times += tl.sum(g * v, 0)
    tl.store(partial + part * 2 * channels + c, plain, mask=inside)
    tl.store(partial + part * 2 * channels + channels + c, times, mask=inside)
    tl.debug_barrier()
    ended = tl.atomic_add(counter + tl.program_id(1), 1, sem="acq_rel", scope="gpu")
    if ended == parts - 1:
        plain = _added(partial, parts, 2 * channels, c, inside, BLOCK_C)
        times = _added(partial + channels, parts, 2 * channels, c, inside, BLOCK_C)
        tl.store(dbias + c, plain, mask=inside)
        tl.store(dweight + c, times, mask=inside)
        tl.store(counter + tl.program_id(1), 0)


@triton.jit
def apply_back(
    dy, x, y, dx, dbeside, mean, rstd, weight, bias, dweight, dbias, rows, channels, stride, apart,
    BLOCK_M: tl.constexpr, BLOCK_C: tl.constexpr, RELU: tl.constexpr, ADD: tl.constexpr,
):  # fmt: skip
    channels = tl.multiple_of(channels, 8)
    stride = tl.multiple_of(stride, 8)
    member = tl.program_id(2)
    dy += member.to(tl.int64) * rows * stride
    x += member.to(tl.int64) * rows * channels
    y += member.to(tl.int64) * rows * channels
    dx += member.to(tl.int64) * rows * channels
    dbeside += member.to(tl.int64) * rows * channels
    mean += member * channels
    rstd += member * channels
    weight += member * apart
    bias += member * apart
    dweight += member * channels
    dbias += member * channels
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    inside = c < channels
    centre = tl.load(mean + c, mask=inside, other=0.0)
    spread = tl.load(rstd + c, mask=inside, other=0.0)
    w = tl.load(weight + c, mask=inside, other=0.0)
    b = tl.load(bias + c, mask=inside, other=0.0)
    plain = tl.load(dbias + c, mask=inside, other=0.0) / rows
    times = tl.load(dweight + c, mask=inside, other=0.0) / rows
    r = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    m = (r < rows)[:, None] & inside[None, :]
    place = r.to(tl.int64)[:, None] * channels + c[None, :]
    g = tl.load(dy + r.to(tl.int64)[:, None] * stride + c[None, :], mask=m, other=0.0).to(tl.float32)
    v = (tl.load(x + place, mask=m, other=0.0).to(tl.float32) - centre[None, :]) * spread[None, :]
    if RELU:
        if ADD:
            g = tl.where(tl.load(y + place, mask=m, other=0.0).to(tl.float32) > 0.0, g, 0.0)
        else:
            g = tl.where(v * w[None, :] + b[None, :] > 0.0, g, 0.0)
    if ADD:
        tl.store(dbeside + place, g.to(dbeside.dtype.element_ty), mask=m)
    d = (w * spread)[None, :] * (g - plain[None, :] - v * times[None, :])
    tl.store(dx + place, d.to(dx.dtype.element_ty), mask=m)


@triton.jit
def bias_relu(
    x, y, bias, rows, channels, BLOCK_M: tl.constexpr, BLOCK_C: tl.constexpr
):  # fmt: skip
    channels = tl.multiple_of(channels, 8)
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    inside = c < channels
    b = tl.load(bias + c, mask=inside, other=0.0).to(tl.float32)
    r = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    m = (r < rows)[:, None] & inside[None, :]
    place = r.to(tl.int64)[:, None] * channels + c[None, :]
    v = tl.load(x + place, mask=m, other=0.0).to(tl.float32) + b[None, :]
    tl.store(y + place, tl.maximum(v, 0.0).to(y.dtype.element_ty), mask=m)


@triton.jit
def bias_relu_back(
    dy, y, dx, partial, counter, dbias, rows, channels, stride, chunk, BLOCK_M: tl.constexpr, BLOCK_C: tl.constexpr
):  # fmt: skip
    channels = tl.multiple_of(channels, 8)
    stride = tl.multiple_of(stride, 8)
    part, parts = tl.program_id(0), tl.num_programs(0)
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    inside = c < channels
    total = tl.zeros((BLOCK_C,), tl.float32)
    for start in range(part * chunk, tl.minimum((part + 1) * chunk, rows), BLOCK_M):
        r = start + tl.arange(0, BLOCK_M)
        m = (r < rows)[:, None] & inside[None, :]
        place = r.to(tl.int64)[:, None] * channels + c[None, :]
        g = tl.load(dy + r.to(tl.int64)[:, None] * stride + c[None, :], mask=m, other=0.0)
        g = tl.where(tl.load(y + place, mask=m, other=0.0).to(tl.float32) > 0.0, g.to(tl.float32), 0.0)
        tl.store(dx + place, g.to(dx.dtype.element_ty), mask=m)
        total += tl.sum(g, 0)
    tl.store(partial + part * channels + c, total, mask=inside)
    tl.debug_barrier()
    ended = tl.atomic_add(counter + tl.program_id(1), 1, sem="acq_rel", scope="gpu")
    if ended == parts - 1:
        total = _added(partial, parts, channels, c, inside, BLOCK_C)
        tl.store(dbias + c, total, mask=inside)
        tl.store(counter + tl.program_id(1), 0)
