"""Which cells of the profiling grid to run: all of them as in the paper, or a D-optimal subset.

The subset maximises `log det(FᵀF)` for the terms that the runtime models need (levels, curvature,
interactions), so that their coefficients are learned with the least variance for the number of runs
(Fedorov's exchange).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from easel.errors import InvalidInput
from easel.price.runs import GPUS, Array, log_features

CPUS = (0.5, 1.0, 2.0)
MEMORIES_MB = (512.0, 1024.0, 2048.0)
"""The paper's resource levels."""
NO_GPU = (0.0,)


def full_grid(
    levels: Mapping[str, Sequence[float]],
    cpus: Sequence[float] = CPUS,
    memories_mb: Sequence[float] = MEMORIES_MB,
    gpus: Sequence[float] = NO_GPU,
) -> list[dict[str, float]]:
    """Every cell: `|cpus|·|memories|·∏|levels|` of them (ACAI §4.2.2), times `|gpus|` where any are asked for."""
    everything = {**levels, "cpus": cpus, "memory_mb": memories_mb}
    if tuple(gpus) != NO_GPU:
        everything[GPUS] = gpus
    for name, values in everything.items():
        least = 0.0 if name == GPUS else np.nextafter(0.0, 1.0)
        if not values or any(not (np.isfinite(v) and v >= least) for v in values):
            raise InvalidInput(f"{name}: list at least one positive number")
        if len(set(values)) < len(values):
            raise InvalidInput(f"{name}: the same level twice")
    return [dict(zip(everything, cell, strict=True)) for cell in itertools.product(*everything.values())]


def unit_scaled(cells: Sequence[Mapping[str, float]]) -> Array:
    """`(n, d)`: logarithms scaled to −1..1 per feature; constant features are left out."""
    X = log_features(tuple(cells[0]), cells)
    low, high = X.min(0), X.max(0)
    varied = high > low
    return np.asarray((2.0 * X[:, varied] - high[varied] - low[varied]) / (high[varied] - low[varied]))


def terms(U: Array) -> Array:
    """`(n, p)`: 1, every column, its square where it has three levels or more, and every product of two
    columns.
    """
    n, d = U.shape
    squares = [U[:, j] ** 2 for j in range(d) if len(np.unique(U[:, j].round(9))) > 2]
    products = [U[:, i] * U[:, j] for i, j in itertools.combinations(range(d), 2)]
    return np.column_stack([np.ones(n), *U.T, *squares, *products])


def default_size(cells: Sequence[Mapping[str, float]]) -> int:
    """One and a half runs a term, at most half of the grid (but never fewer than eight, or all of a small
    one).
    """
    p = int(terms(unit_scaled(cells)).shape[1])
    return min(len(cells), max(8, min(2 * p, len(cells) // 2)))


def d_optimal(
    cells: Sequence[Mapping[str, float]], count: int, price: Sequence[float] | None = None
) -> list[int]:
    """Indices of `count` distinct cells with a large `det(FᵀF)`, in grid order; deterministic.

    Greedy start, then exchanges of one chosen cell for one other as long as the determinant grows. Between
    cells of equal worth the one with the lower `price` `(n,)` is taken.
    """
    if not 1 <= count <= len(cells):
        raise InvalidInput(f"a design of {count} runs out of {len(cells)} cells is not possible")
    F = terms(unit_scaled(cells))
    n, p = F.shape
    # The cheaper of two equals: a thumb on the scale far below any real difference in information.
    paid = np.zeros(n) if price is None else np.asarray(price, float)
    nudge = 1e-9 * (np.argsort(np.argsort(paid, kind="stable"), kind="stable") + 1) / n
    chosen: list[int] = []
    # A small ridge keeps the determinant meaningful while there are fewer cells than terms.
    inverse = np.eye(p) / 1e-4
    for _ in range(count):
        gain = np.einsum("ij,jk,ik->i", F, inverse, F) * (1.0 - nudge)
        gain[chosen] = -np.inf
        best = int(np.argmax(gain))
        chosen.append(best)
        inverse = _with_row(inverse, F[best], +1.0)
    for _ in range(20 * count):
        exchange = _best_exchange(F, inverse, chosen, nudge)
        if exchange is None:
            break
        leaving, entering = exchange
        inverse = _with_row(_with_row(inverse, F[entering], +1.0), F[chosen[leaving]], -1.0)
        chosen[leaving] = entering
    return sorted(chosen)


def _with_row(inverse: Array, row: Array, sign: float) -> Array:
    """`(M ± rrᵀ)⁻¹` from `M⁻¹` (Sherman–Morrison)."""
    v = inverse @ row
    return inverse - sign * np.outer(v, v) / (1.0 + sign * row @ v)


def _best_exchange(F: Array, inverse: Array, chosen: list[int], nudge: Array) -> tuple[int, int] | None:
    """The pair with the largest Fedorov gain `d_j − d_i·d_j + d_ij² − d_i`, if it is worth having."""
    d = np.einsum("ij,jk,ik->i", F, inverse, F)
    between = F[chosen] @ inverse @ F.T
    gain = d[None, :] - d[chosen][:, None] * d[None, :] + between**2 - d[chosen][:, None]
    gain = gain + nudge[chosen][:, None] - nudge[None, :]
    gain[:, chosen] = -np.inf
    at = np.unravel_index(int(np.argmax(gain)), gain.shape)
    return (int(at[0]), int(at[1])) if gain[at] > 1e-8 else None
