"""Trees → counts of hashed subtrees: an explicit feature map of the subtree kernel (Collins & Duffy 2001).

The dot product of two count vectors is the kernel that compares all pairs of subtrees up to depth 2, so that
a linear SVM on the counts is the tree-kernel SVM.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from easel.match.examples import Object, Tree, Value

BUCKETS = 4_096


@dataclass(frozen=True)
class SubtreeEncoder:
    """Numbers at nodes are compared through `levels`, the quartiles seen in training."""

    levels: tuple[float, ...]

    def __call__(self, objects: Sequence[Object]) -> NDArray[np.float64]:
        """`(n, 4096)`, each row of unit length."""
        counts = np.zeros((len(objects), BUCKETS))
        for row, one in enumerate(objects):
            assert isinstance(one, Tree)
            for node in one.nodes():
                for text in self._shapes(node):
                    counts[row, zlib.crc32(text.encode()) % BUCKETS] += 1.0
        length = np.linalg.norm(counts, axis=1, keepdims=True)
        unit: NDArray[np.float64] = counts / np.maximum(length, 1e-12)
        return unit

    def _label(self, node: Tree | None) -> str:
        if node is None:
            return "-"
        return "|".join(v if isinstance(v, str) else self._levels(v) for v in node.values)

    def _levels(self, value: Value) -> str:
        numbers = np.ravel(np.asarray(0.0 if value is None else value, dtype=float))
        return ",".join(map(str, np.searchsorted(self.levels, numbers)))

    def _shapes(self, node: Tree) -> tuple[str, str, str]:
        """The node alone, with its children, and with its grandchildren."""
        children = [self._label(child) for child in node.children]
        deep = (
            [
                f"{self._label(child)}({' '.join(self._label(c) for c in child.children) if child else ''})"
                for child in node.children
            ]
            if any(node.children)
            else []
        )
        own = self._label(node)
        return f"1:{own}", f"2:{own}({' '.join(children)})", f"3:{own}({' '.join(deep)})"


def fit_subtrees(objects: Sequence[Object]) -> SubtreeEncoder:
    numbers = [
        np.ravel(np.asarray(value, dtype=float))
        for one in objects
        if isinstance(one, Tree)
        for node in one.nodes()
        for value in node.values
        if not isinstance(value, str) and value is not None
    ]
    if not numbers:
        return SubtreeEncoder(())
    return SubtreeEncoder(tuple(np.quantile(np.concatenate(numbers), (0.25, 0.5, 0.75)).tolist()))
