"""How a model did on the examples it was validated on: confusion or residuals, and how its training went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from easel.match.targets import Classes, Values

MOST_CLASSES = 200
MOST_POINTS = 1_000


def describe(
    target: Any,
    truth: NDArray[Any],
    predicted: NDArray[Any],
    by_example: NDArray[np.intp],
    curves: Sequence[Sequence[tuple[float, float]]] = (),
) -> dict[str, Any]:
    """JSON: `classes` and `confusion[true][predicted]`, or `residuals` `[truth, prediction]`, and `curves`.

    Each example counts once: where folds were dealt several times, by the first deal. Of several outputs the first is
    drawn. Points are thinned evenly, the order of examples kept.
    """
    once = by_example[:, 0]
    truth, predicted = truth[once], predicted[once]
    about: dict[str, Any] = {"curves": [[list(point) for point in curve] for curve in curves]}
    if isinstance(target, Classes) and len(target.names) <= MOST_CLASSES:
        counts = np.zeros((len(target.names), len(target.names)), dtype=int)
        np.add.at(counts, (truth, predicted.argmax(1)), 1)
        about |= {"classes": list(target.names), "confusion": counts.tolist()}
    if isinstance(target, Values):
        step = max(1, len(truth) // MOST_POINTS)
        both = np.stack([truth[::step, 0], predicted[::step, 0]], axis=1)
        about["residuals"] = both[:MOST_POINTS].tolist()
    return about
