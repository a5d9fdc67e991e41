"""Gauss–Hermite quadrature for expectations under a normal distribution."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@lru_cache(maxsize=16)
def normal_nodes(count: int) -> tuple[Array, Array]:
    """Nodes `z` and weights `w`, each `(count,)`: `E f(N(m, s²)) ≈ Σ w_i f(m + s·z_i)`.

    Exact for polynomials of degree below `2·count`; the weights add up to one.
    """
    x, w = np.polynomial.hermite.hermgauss(count)
    return np.sqrt(2.0) * x, w / np.sqrt(np.pi)


def normal_grid(counts: tuple[int, ...]) -> tuple[Array, Array]:
    """The product rule over independent normals: nodes `(k, dims)` and weights `(k,)`, `k = Π counts`."""
    rules = [normal_nodes(count) for count in counts]
    z = np.stack([g.reshape(-1) for g in np.meshgrid(*(r[0] for r in rules), indexing="ij")], axis=-1)
    w = np.ones(1)
    for _, weights in rules:
        w = np.multiply.outer(w, weights).reshape(-1)
    return z, w
