"""How a model did on the examples it was validated on: confusion or residuals, and how its training went."""

from __future__ import annotations

from typing import Any

import numpy as np

from easel.match.split import rows_by_example
from easel.match.targets import Classes, Values
from easel.match.train import Trained

MOST_CLASSES = 200
MOST_POINTS = 1_000


def describe(trained: Trained) -> dict[str, Any]:
    """JSON: `classes` and `confusion[true][predicted]`, or `residuals` `[truth, prediction]`, and `curves`.

    Each example counts once: where folds were dealt several times, by the first deal. Of several outputs the first is
    drawn. Points are thinned evenly, the order of examples kept.
    """
    learned, target = trained.learned, trained.model.target
    once = rows_by_example(learned.validated)[:, 0]
    truth, predicted = learned.truth[once], learned.predicted[once]
    about: dict[str, Any] = {"curves": [[list(point) for point in curve] for curve in learned.curves]}
    if isinstance(target, Classes) and len(target.names) <= MOST_CLASSES:
        counts = np.zeros((len(target.names), len(target.names)), dtype=int)
        np.add.at(counts, (truth, predicted.argmax(1)), 1)
        about |= {"classes": list(target.names), "confusion": counts.tolist()}
    if isinstance(target, Values):
        step = max(1, len(truth) // MOST_POINTS)
        both = np.stack([truth[::step, 0], predicted[::step, 0]], axis=1)
        about["residuals"] = both[:MOST_POINTS].tolist()
    return about
