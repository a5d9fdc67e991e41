"""Bagged ensembles of random regression trees: a mean and a spread from a handful of observations, fast.

A tree is grown on a bootstrap sample without pruning; each node looks at `k = ⌊log2 d⌋ + 1` random features and
takes the cut with the largest drop in squared error (Weka's RandomTree, as Lynceus and Nephele use it). The cut
lies at a random place between the two neighbouring values, so that trees disagree where nothing was observed.

All trees of all targets grow together, one level at a time, as array operations: at these sizes the cost is the
number of NumPy calls, and growing ten trees costs hardly more than growing one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]

# More distinct values than this in one feature are grouped into quantiles before growing.
_BINS = 64


@dataclass(frozen=True)
class Forest:
    """`targets · trees` trees in one node table; arrays over nodes, `left` = −1 at leaves.

    `roots`: `(q, b)` first node of each tree of each target; `sample`: row of one training point in a leaf.
    """

    x: Array
    roots: Ints
    feature: Ints
    cut: Array
    left: Ints
    value: Array
    weight: Array
    sample: Ints

    def leaves(self, x: Array) -> Ints:
        """`x`: `(m, d)` → leaf node of every point in every tree, `(q, b, m)`."""
        m = len(x)
        at = np.broadcast_to(self.roots[..., None], (*self.roots.shape, m)).reshape(-1).copy()
        column = np.ascontiguousarray(x.T).reshape(-1)
        place = np.tile(np.arange(m), self.roots.size)
        moving = np.flatnonzero(self.left[at] >= 0)
        while len(moving):
            node = at[moving]
            right = column[self.feature[node] * m + place[moving]] > self.cut[node]
            at[moving] = self.left[node] + right
            moving = moving[self.left[at[moving]] >= 0]
        return at.reshape(*self.roots.shape, m)

    def trees(self, x: Array) -> Array:
        """`x`: `(m, d)` → what every tree says, `(q, b, m)`."""
        return self.value[self.leaves(x)]

    def predict(self, x: Array) -> tuple[Array, Array]:
        """`x`: `(m, d)` → mean and spread over the trees, each `(q, m)`."""
        values = self.trees(x)
        return values.mean(axis=1), values.std(axis=1)

    def insert(
        self, new: Array, leaf_of_new: Ints, x: Array, leaf_of_x: Ints, rng: np.random.Generator
    ) -> Mask:
        """Returns where each tree's answer becomes the new point's value once that point is known: `(q, b, k, m)`.

        `new`: `(k, d)`, each inserted on its own; `x`: `(m, d)`; the `leaf_of_…` come from `leaves`. A fully grown
        tree changes only inside the leaf that receives the point: the leaf is cut in two between the point and
        the leaf's own sample, along a random feature in which they differ. A tree whose bootstrap sample would
        leave the point out, which happens with probability 1/e, does not change.
        """
        old = self.x[self.sample[leaf_of_new]]  # (q, b, k, d)
        gap = old - new
        pick = np.where(gap != 0, rng.random(gap.shape), -1.0).argmax(axis=-1)  # (q, b, k)
        a = np.take_along_axis(np.broadcast_to(new, gap.shape), pick[..., None], axis=-1)[..., 0]
        b = np.take_along_axis(old, pick[..., None], axis=-1)[..., 0]
        cut = a + (b - a) * rng.uniform(0.25, 0.75, a.shape)
        column = x.T[pick]  # (q, b, k, m)
        near = np.where((a < b)[..., None], column <= cut[..., None], column > cut[..., None])
        near |= (a == b)[..., None]
        taken = rng.random(self.roots.shape) < 1 - np.exp(-1.0)
        inside: Mask = leaf_of_new[..., None] == leaf_of_x[..., None, :]
        changed: Mask = inside & near & taken[..., None, None]
        return changed


def grow(x: Array, y: Array, *, trees: int, rng: np.random.Generator, bootstrap: bool = True) -> Forest:
    """`x`: `(n, d)`, `y`: `(q, n)` or `(n,)` finite → `trees` trees for each of the `q` targets."""
    y = np.atleast_2d(y)
    n, d = x.shape
    q = len(y)
    total = q * trees
    if bootstrap and n > 1:
        counts = rng.multinomial(n, np.full(n, 1.0 / n), size=total).astype(np.float64)
    else:
        counts = np.ones((total, n))
    codes, values = _bins(x)
    bins = values.shape[1]
    k = min(d, int(np.log2(d)) + 1)

    tree, row = np.nonzero(counts)
    w = counts[tree, row]
    target = y[tree // trees, row]
    code = codes[row]  # (e, d)
    node = tree.astype(np.intp)
    table = _Nodes(total, 2 * len(row) + total)

    live = np.arange(len(row))
    while len(live):
        at, w_, y_, c_ = node[live], w[live], target[live], code[live]
        ids, local = np.unique(at, return_inverse=True)
        a = len(ids)
        weight = np.bincount(local, w_, a)
        mean = np.bincount(local, w_ * y_, a) / weight
        table.value[ids] = mean
        table.weight[ids] = weight
        table.sample[ids[local[::-1]]] = row[live[::-1]]
        low = np.full((a, d), bins)
        high = np.full((a, d), -1)
        np.minimum.at(low, local, c_)
        np.maximum.at(high, local, c_)
        varies = high > low
        error = np.bincount(local, w_ * (y_ - mean[local]) ** 2, a)
        split = varies.any(axis=1) & (error > 1e-18 * (1.0 + mean**2) * weight)
        if not split.any():
            break
        order = np.where(varies, rng.random((a, d)), 2.0).argsort(axis=1)[:, :k]  # (a, k)
        useful = np.take_along_axis(varies, order, axis=1)
        cell = np.take_along_axis(c_, order[local], axis=1)  # (e, k)
        flat = ((local[:, None] * k + np.arange(k)) * bins + cell).reshape(-1)
        residual = y_ - mean[local]
        ws = np.bincount(flat, np.repeat(w_, k), a * k * bins).reshape(a, k, bins)
        ys = np.bincount(flat, np.repeat(w_ * residual, k), a * k * bins).reshape(a, k, bins)
        lw, ly = ws.cumsum(axis=2)[..., :-1], ys.cumsum(axis=2)[..., :-1]
        rw = weight[:, None, None] - lw
        # Residuals are centred, so the drop in squared error is ly²/lw + ly²/rw.
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = ly**2 / lw + ly**2 / rw
        # Only cuts right after an occupied bin that leave something on both sides.
        gain = np.where((ws[..., :-1] > 0) & (rw > 0.5) & useful[..., None], gain, -1.0)
        best = gain.reshape(a, -1).argmax(axis=1)
        chosen, bin_ = np.divmod(best, bins - 1)
        split &= gain.reshape(a, -1)[np.arange(a), best] >= 0
        feature = order[np.arange(a), chosen]
        after = ws[np.arange(a), chosen] > 0
        after &= np.arange(bins) > bin_[:, None]
        next_bin = after.argmax(axis=1)
        below, above = values[feature, bin_], values[feature, next_bin]
        cut = below + (above - below) * rng.uniform(0.02, 0.98, a)
        parents = ids[split]
        table.add_children(parents, feature[split], cut[split])
        stays = split[local]
        live = live[stays]
        inside = local[stays]
        node[live] = table.left[ids[inside]] + (c_[stays, feature[inside]] > bin_[inside])
    return table.forest(x, np.arange(total, dtype=np.intp).reshape(q, trees))


def _bins(x: Array) -> tuple[Ints, Array]:
    """Integer codes `(n, d)` and `(d, bins)`: for each feature the value that each code stands for, rising."""
    codes = np.empty(x.shape, dtype=np.intp)
    values: list[Array] = []
    for j in range(x.shape[1]):
        distinct, code = np.unique(x[:, j], return_inverse=True)
        if len(distinct) > _BINS:
            edges = np.unique(np.quantile(x[:, j], np.linspace(0, 1, _BINS + 1)[1:-1]))
            code = np.searchsorted(edges, x[:, j])
            used, code = np.unique(code, return_inverse=True)
            distinct = np.array([x[code == c, j].mean() for c in range(len(used))])
        codes[:, j] = code
        values.append(distinct)
    # At least two bins, so that there is a (never chosen) cut even where every feature is constant.
    table = np.full((x.shape[1], max([2, *(len(v) for v in values)])), np.inf)
    for j, distinct in enumerate(values):
        table[j, : len(distinct)] = distinct
    return codes, table


class _Nodes:
    """The growing node table; capacity is known beforehand since every split separates observations."""

    def __init__(self, roots: int, capacity: int) -> None:
        self.used = roots
        self.feature = np.zeros(capacity, dtype=np.intp)
        self.cut = np.zeros(capacity)
        self.left = np.full(capacity, -1, dtype=np.intp)
        self.value = np.zeros(capacity)
        self.weight = np.zeros(capacity)
        self.sample = np.zeros(capacity, dtype=np.intp)

    def add_children(self, parents: Ints, feature: Ints, cut: Array) -> None:
        self.feature[parents] = feature
        self.cut[parents] = cut
        self.left[parents] = self.used + 2 * np.arange(len(parents))
        self.used += 2 * len(parents)

    def forest(self, x: Array, roots: Ints) -> Forest:
        n = self.used
        return Forest(
            x,
            roots,
            self.feature[:n],
            self.cut[:n],
            self.left[:n],
            self.value[:n],
            self.weight[:n],
            self.sample[:n],
        )
