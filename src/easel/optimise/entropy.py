"""How much one more observation tells about where the optimum is.

Joint draws at `m` representative points stand for the posterior; what an observation would change is a shift of
each draw along one direction (Matheron's rule), so nothing is refitted or drawn again:

`f' = f + g·(ε − ζ)`, with `g` the change of the means per standard deviation of surprise, `ε` the surprise that
is imagined, and `ζ` the surprise that the draw itself would have produced.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# Three-node-per-axis product rules grow quickly; these four points integrate all cubics over two normals.
CUBIC_2D = (
    np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]) * np.sqrt(2.0),
    np.full(4, 0.25),
)
_CHUNK = 16


@dataclass(frozen=True)
class Draws:
    """Joint draws of one quantity at the representatives and the surprise each would cause at the candidates.

    `values`: `(k, m)`; `surprise`: `(k, c)` standard normal; `gains`: `(c, m)`.
    """

    values: Array
    surprise: Array
    gains: Array

    def shifted(self, rows: slice, epsilon: Array) -> Array:
        """Draws given that candidate `c` surprises by `epsilon` `(q,)`: `(rows, q, k, m)`."""
        move = epsilon[None, :, None] - self.surprise.T[rows][:, None, :]  # (rows, q, k)
        return self.values[None, None] + self.gains[rows][:, None, None, :] * move[..., None]


def draw(
    mean: Array, cov: Array, cross: Array, variance: Array, noise: float, count: int, rng: np.random.Generator
) -> Draws:
    """`mean` `(m,)` and `cov` `(m, m)` at the representatives, `cross` `(c, m)` covariances with the candidates,
    `variance` `(c,)` of the candidates → `count` draws."""
    w, V = np.linalg.eigh(cov)
    keep = w > 1e-10 * max(float(w.max(initial=0.0)), 1e-300)
    root = V[:, keep] * np.sqrt(w[keep])
    gains = cross / np.sqrt(np.maximum(variance + noise, 1e-300))[:, None]
    z = rng.standard_normal((count, root.shape[1]))
    # The candidate's surprise given the draw: its projection on the draw's own coordinates, and the rest.
    along = gains @ (V[:, keep] / np.sqrt(w[keep]))  # (c, r)
    rest = np.sqrt(np.clip(1.0 - (along**2).sum(axis=1), 0.0, 1.0))
    surprise = z @ along.T + rng.standard_normal((count, 1)) * rest
    return Draws(mean + z @ root.T, surprise, gains)


def entropy(counts: Array) -> Array:
    """`−Σ p log p` in nats over the last axis; `counts` need not add up to one."""
    total = np.maximum(counts.sum(axis=-1, keepdims=True), 1e-300)
    p = counts / total
    return np.asarray(-(p * np.log(np.where(p > 0, p, 1.0))).sum(axis=-1))


def _optima(values: Array, feasible: Mask | None) -> npt.NDArray[np.intp]:
    """Index of the best representative of each draw, or `m` where the draw has no feasible one."""
    if feasible is None:
        return np.asarray(values.argmax(axis=-1))
    held = np.where(feasible, values, -np.inf)
    best = held.argmax(axis=-1)
    none = ~feasible.any(axis=-1)
    return np.asarray(np.where(none, values.shape[-1], best), dtype=np.intp)


def _entropy_of(optima: npt.NDArray[np.intp], m: int) -> Array:
    """Entropy of the empirical distribution of `optima` `(…, k)` over `m + 1` outcomes, shape `(…)`."""
    lead = optima.shape[:-1]
    flat = optima.reshape(-1, optima.shape[-1])
    offsets = np.arange(len(flat))[:, None] * (m + 1)
    counts = np.bincount((flat + offsets).reshape(-1), minlength=len(flat) * (m + 1))
    return entropy(counts.reshape(len(flat), m + 1).astype(float)).reshape(lead)


def information_gain(quality: Draws, z: Array, w: Array) -> Array:
    """`(c,)`: `H[p_max] − E_ε H[p_max | candidate surprises by ε]`, nodes `z` and weights `w` `(q,)`.

    Not clipped: draws are finite, so that the difference may come out slightly negative.
    """
    m = quality.values.shape[1]
    before = float(_entropy_of(_optima(quality.values, None), m))
    gain = np.empty(len(quality.gains))
    for begin in range(0, len(gain), _CHUNK):
        rows = slice(begin, begin + _CHUNK)
        after = _entropy_of(_optima(quality.shifted(rows, z), None), m)  # (rows, q)
        gain[rows] = before - after @ w
    return gain


def constrained_information_gain(
    quality: Draws, limits: list[tuple[Draws, Array]], z: Array, w: Array
) -> Array:
    """Returns the gain about the best *feasible* one: each of `limits` holds where its draw is ≤ its bound `(m,)`.

    `z`: `(q, 2)`: the surprise in quality and, common to all limits, in the constrained quantities.
    """
    m = quality.values.shape[1]

    def within(values: list[Array]) -> Mask | None:
        held = None
        for (_, bound), value in zip(limits, values, strict=True):
            ok = value <= bound
            held = ok if held is None else held & ok
        return held

    before = float(_entropy_of(_optima(quality.values, within([d.values for d, _ in limits])), m))
    gain = np.empty(len(quality.gains))
    for begin in range(0, len(gain), _CHUNK):
        rows = slice(begin, begin + _CHUNK)
        values = quality.shifted(rows, z[:, 0])
        held = within([d.shifted(rows, z[:, 1]) for d, _ in limits])
        gain[rows] = before - _entropy_of(_optima(values, held), m) @ w
    return gain
