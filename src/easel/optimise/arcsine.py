"""Qualities in [0, 1] as angles `w = arcsin √q`, in which a belief is normal; gains are reckoned in quality.

Near 0 and 1 qualities lie close together: a point of accuracy at 0.98 is a larger step than one at 0.7. In angles the
spread of a mean of many right and wrong answers is the same everywhere (Anscombe's transformation).
"""

from __future__ import annotations

import numpy as np

from easel.optimise.arrays import Array, normal_cdf, normal_pdf

RIGHT = np.pi / 2
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_REACH = 24.0
"""A tail is cut off where its density has fallen by e⁻¹²."""


def to_angle(q: Array) -> Array:
    """`arcsin √q` of qualities, those outside [0, 1] taken as the nearest inside."""
    return np.asarray(np.arcsin(np.sqrt(np.clip(q, 0.0, 1.0))))


def to_quality(w: Array) -> Array:
    """`sin² w` of angles, those outside [0, π/2] taken as the nearest inside."""
    return np.asarray(np.sin(np.clip(w, 0.0, RIGHT)) ** 2)


def quality_moments(m: Array, s: Array) -> tuple[Array, Array]:
    """Mean and deviation of `sin² w` for `w ~ N(m, s²)`: `sin² = (1 − cos 2w)/2`, `E cos aw = e^{−a²s²/2} cos am`."""
    two, four = np.exp(-2.0 * s * s) * np.cos(2.0 * m), np.exp(-8.0 * s * s) * np.cos(4.0 * m)
    mean = 0.5 * (1.0 - two)
    square = (3.0 - 4.0 * two + four) / 8.0
    return np.asarray(mean), np.asarray(np.sqrt(np.maximum(square - mean * mean, 0.0)))


def gain_above(m: Array, s: Array, best: float, ceiling: float = 1.0) -> Array:
    """`E[(min(sin² w, ceiling) − best)⁺]` for `w ~ N(m, s²)`, `m`, `s` `(..., K)`.

    Gauss–Legendre over what lies between `best` and the ceiling, as far as the tail reaches; what lies above the
    ceiling counts as the ceiling.
    """
    best, ceiling = float(np.clip(best, 0.0, 1.0)), float(np.clip(ceiling, 0.0, 1.0))
    if ceiling <= best:
        return np.zeros(np.broadcast(m, s).shape)
    sure = s < 1e-9
    width = np.where(sure, 1.0, s)
    low = (to_angle(np.array(best)) - m) / width
    top = (to_angle(np.array(ceiling)) - m) / width
    above = np.maximum(low, 0.0)
    start = np.minimum(np.maximum(low, -5.0), top)
    end = np.maximum(np.minimum(top, np.sqrt(above * above + _REACH)), start)
    half = 0.5 * (end - start)
    z = (start + half)[..., None] + half[..., None] * _NODES
    inside = np.sin(m[..., None] + width[..., None] * z) ** 2 - best
    gain = half * ((inside * normal_pdf(z)) @ _WEIGHTS) + (ceiling - best) * normal_cdf(-top)
    certain = np.clip(to_quality(m), None, ceiling) - best
    return np.asarray(np.where(sure, certain, gain).clip(min=0.0))
