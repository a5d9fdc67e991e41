"""Series → `(n, channels, length)` with a mask, and trees → padded node lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from easel.declare.program import Category, DataType
from easel.match.encode.steps import StepCoder, fit_steps
from easel.match.examples import Array, Chain, Object, Tree
from easel.match.normalise import Normalisation, fit_normalisation

LONGEST = 2_000
MOST_NODES = 256


@dataclass(frozen=True)
class SeriesEncoder:
    """Steps become vectors; every series is padded (or thinned evenly) to `length` steps."""

    steps: StepCoder
    length: int
    normalisation: Normalisation

    @property
    def vocabularies(self) -> tuple[tuple[str, ...], ...]:
        """Returns for each field the words that it knows, where it is a category."""
        return self.steps.vocabularies

    def __call__(self, objects: Sequence[Object]) -> dict[str, Array]:
        """`{"x": (n, channels, length), "mask": (n, length)}`; the mask is 1 where the series goes on."""
        x = np.zeros((len(objects), self.steps.width, self.length), dtype=np.float32)
        mask = np.zeros((len(objects), self.length), dtype=np.float32)
        for row, one in enumerate(objects):
            matrix = self.normalisation(matrix_of(self.steps, one))
            matrix = thin(matrix, self.length)
            x[row, :, : len(matrix)] = matrix.T
            mask[row, : len(matrix)] = 1.0
        return {"x": x, "mask": mask}


def matrix_of(steps: StepCoder, one: Object) -> Array:
    """`(T, channels)` of one series."""
    assert isinstance(one, Chain)
    return np.concatenate([steps.column(k, column) for k, column in enumerate(one.columns)], axis=1)


def thin(matrix: Array, length: int) -> Array:
    """Returns at most `length` rows, evenly spaced."""
    if len(matrix) <= length:
        return matrix
    kept: Array = matrix[np.linspace(0, len(matrix) - 1, length).round().astype(int)]
    return kept


def fit_series(data_type: DataType, objects: Sequence[Object], normalisation: str) -> SeriesEncoder:
    categories: list[set[str]] = [set() for _ in data_type.fields]
    longest = 1
    for one in objects:
        assert isinstance(one, Chain)
        longest = max(longest, len(one))
        for k, field in enumerate(data_type.fields):
            if isinstance(field, Category):
                categories[k] |= {v for v in one.columns[k] if isinstance(v, str)}
    steps = fit_steps(data_type, categories)
    length = min(longest, LONGEST)
    values = np.concatenate([thin(matrix_of(steps, one), length) for one in objects])
    return SeriesEncoder(steps, length, fit_normalisation(normalisation, values))


@dataclass(frozen=True)
class TreeEncoder:
    """Nodes in an order with parents before children, at most `nodes` of them."""

    steps: StepCoder
    pointers: int
    nodes: int
    normalisation: Normalisation

    @property
    def vocabularies(self) -> tuple[tuple[str, ...], ...]:
        """Returns for each field the words that it knows, where it is a category."""
        return self.steps.vocabularies

    def __call__(self, objects: Sequence[Object]) -> dict[str, NDArray[np.generic]]:
        """`{"x": (n, nodes, width), "children": (n, nodes, pointers)}`; the index `nodes` means no child."""
        x = np.zeros((len(objects), self.nodes, self.steps.width), dtype=np.float32)
        children = np.full((len(objects), self.nodes, self.pointers), self.nodes, dtype=np.int64)
        for row, one in enumerate(objects):
            assert isinstance(one, Tree)
            order = list(one.nodes())[: self.nodes]
            number = {id(node): position for position, node in enumerate(order)}
            x[row, : len(order)] = self.normalisation(tree_matrix(self.steps, order))
            for position, node in enumerate(order):
                for slot, child in enumerate(node.children):
                    if child is not None:
                        children[row, position, slot] = number.get(id(child), self.nodes)
        return {"x": x, "children": children}


def tree_matrix(steps: StepCoder, order: Sequence[Tree]) -> Array:
    """`(nodes, width)`."""
    columns = [steps.column(k, [node.values[k] for node in order]) for k in range(len(steps.widths))]
    return np.concatenate(columns, axis=1)


def fit_trees(data_type: DataType, objects: Sequence[Object], normalisation: str) -> TreeEncoder:
    categories: list[set[str]] = [set() for _ in data_type.fields]
    trees = [one for one in objects if isinstance(one, Tree)]
    for tree in trees:
        for node in tree.nodes():
            for k, value in enumerate(node.values):
                if isinstance(value, str):
                    categories[k].add(value)
    steps = fit_steps(data_type, categories)
    most = max(sum(1 for _ in tree.nodes()) for tree in trees)
    values = np.concatenate([tree_matrix(steps, list(tree.nodes())) for tree in trees])
    pointers = len(data_type.pointers)
    return TreeEncoder(steps, pointers, min(most, MOST_NODES), fit_normalisation(normalisation, values))
