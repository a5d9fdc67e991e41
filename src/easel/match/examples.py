"""System data types: what a program's objects are once they are inside (ease.ml §3.1, figure 5).

A type without pointers holds `Single` objects, with one pointer `Chain`s (kept by column, not as linked
objects: a series of 100,000 steps must not need 100,000 nested records), with several `Tree`s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from easel.errors import InvalidInput


class ExampleError(InvalidInput):
    """An example does not fit its program; the message names the field, what was wanted and found."""

    kind = "invalid-example"


Array: TypeAlias = NDArray[np.float32]
Value: TypeAlias = Array | float | str | None
"""A tensor, a number, a category or text, or a missing value."""


@dataclass(frozen=True, eq=False)
class Single:
    """One value for each field."""

    values: tuple[Value, ...]


@dataclass(frozen=True, eq=False)
class Chain:
    """One column for each field: `(T, *shape)` for numbers and tensors, a tuple of T values otherwise."""

    columns: tuple[Array | tuple[Value, ...], ...]

    def __len__(self) -> int:
        return len(self.columns[0])


@dataclass(frozen=True, eq=False)
class Tree:
    """One value for each field and, for each pointer, a subtree or nothing."""

    values: tuple[Value, ...]
    children: tuple[Tree | None, ...]

    def nodes(self) -> Iterator[Tree]:
        """Every node, parents before their children."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(child for child in reversed(node.children) if child is not None)


Object: TypeAlias = Single | Chain | Tree


@dataclass(frozen=True, eq=False)
class Example:
    """A pair that the function should approximate."""

    input: Object
    output: Object
