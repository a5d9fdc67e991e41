"""Train this script as cheaply as possible with at least 85 % accuracy.

A small real job: a two-layer network on 8 × 8 pictures of digits (scikit-learn's, 1,797 of them), trained here and now.
Tuned together: the learning rate, the width, the batch size, the share of the data — and the size of the machine,
which is a resource with a price. `python docs/tutorial/train_cheaply/in_process.py` takes about a minute on one core.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import easel
from easel.study import Categorical, Ordinal, Rates, Role, Space, Term, fraction

SPACE = Space(
    (
        Ordinal("learning_rate", (1e-4, 1e-3, 1e-2, 1e-1)),
        Ordinal("width", (8, 32, 128)),
        Ordinal("batch_size", (32, 128)),
        Categorical("machine", ("slow", "fast"), role=Role.RESOURCE),
        fraction("share", (0.1, 0.25, 0.5, 1.0)),
    ),
    # Money per hour of each machine.
    rates=Rates((Term(by="machine", table={"slow": 36.0, "fast": 90.0}),)),
)

pixels, digits = load_digits(return_X_y=True)
x_train, x_test, y_train, y_test = train_test_split(
    pixels / 16.0, digits, test_size=0.3, random_state=0, stratify=digits
)


def train(point: dict[str, Any]) -> dict[str, float]:
    """What you would run anyway. Nested samples: the first part of one fixed order."""
    count = int(len(x_train) * point["share"])
    began = time.process_time()
    model = MLPClassifier(
        (point["width"],),
        learning_rate_init=point["learning_rate"],
        batch_size=min(point["batch_size"], count),
        max_iter=15,
        n_iter_no_change=15,
        random_state=0,
    )
    model.fit(x_train[:count], y_train[:count])
    seconds = time.process_time() - began
    # The fast machine is twice as fast and costs two and a half times as much.
    return {
        "accuracy": model.score(x_test, y_test),
        "time": seconds / (2.0 if point["machine"] == "fast" else 1.0),
    }


def main(picture: Path | None) -> None:
    import warnings

    warnings.simplefilter("ignore")
    histories = {}
    for strategy in ("auto", "random"):
        study = easel.minimise(
            train,
            SPACE,
            "cost",
            constraints=["accuracy >= 0.85"],
            budget={"count": 40},
            at="any",
            strategy=strategy,
        )
        assert study.best is not None
        print(strategy, "recommends", dict(study.best.point), study.best.observed)
        spent, best, rows = 0.0, float("inf"), []
        for o in study.observations:
            values = study.tuner.state.values(o)
            spent += values["cost"]
            if values["accuracy"] >= 0.85:
                best = min(best, values["cost"])
            rows.append((spent, best))
        histories[strategy] = np.array(rows)
    if picture is not None:
        draw(histories, picture)


def draw(histories: dict[str, np.ndarray], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4))
    for name, rows in histories.items():
        axes.step(rows[:, 0], rows[:, 1], where="post", label=name)
    axes.set(
        yscale="log", xlabel="money spent on exploring", ylabel="cost of training with the recommendation"
    )
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
