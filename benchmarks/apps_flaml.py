"""One turn of FLAML on one data set: the validation and test accuracy of every model, by processor time.

python -m benchmarks.apps_flaml NAME SECONDS OUT.json        (needs flaml[automl])
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

_offset = time.time() - time.process_time()
_looked = 0.0
"""Processor seconds spent on looking at the test set, which FLAML would not do: they do not count."""
time.time = lambda: _offset + time.process_time() - _looked  # before FLAML looks at the clock


def rows_of(pairs: list[tuple[Any, Any]], longest: int) -> np.ndarray:
    """Pictures and series as rows; shorter series are padded with zeros."""
    flat = [np.ravel(np.asarray(x, dtype=float)) for x, _ in pairs]
    return np.stack([np.pad(row, (0, max(0, longest - len(row))))[:longest] for row in flat])


def main() -> None:
    from flaml import AutoML

    from benchmarks.apps import load

    name, seconds, out = sys.argv[1], float(sys.argv[2]), Path(sys.argv[3])
    loaded = load(name)
    assert loaded is not None
    _, train, test = loaded
    longest = max(np.size(x) for x, _ in train)
    x, x_test = rows_of(train, longest), rows_of(test, longest)
    y, y_test = (np.array([str(label) for _, label in pairs]) for pairs in (train, test))
    names = sorted(set(y))
    number = {label: k for k, label in enumerate(names)}
    truth = np.array([number.get(label, -1) for label in y_test])
    began = time.process_time()
    found: list[tuple[float, float, float]] = []

    def accuracy(
        x_val: Any, y_val: Any, estimator: Any, labels: Any, x_train: Any, y_train: Any, *_: Any, **__: Any
    ) -> tuple[float, dict[str, float]]:
        global _looked
        loss = 1.0 - float(np.mean(estimator.predict(x_val) == y_val))
        before = time.process_time()
        tested = float(np.mean(estimator.predict(x_test) == truth))
        _looked += time.process_time() - before
        return loss, {"test": tested}

    log = out.with_suffix(".log")
    learner = AutoML()
    learner.fit(
        x,
        np.array([number[label] for label in y]),
        task="classification",
        metric=accuracy,
        time_budget=seconds,
        n_jobs=1,
        seed=0,
        log_file_name=str(log),
        log_type="all",
        verbose=0,
    )
    for line in log.read_text().splitlines():
        row = json.loads(line)
        if "validation_loss" in row:
            logged = row.get("logged_metric") or {}
            if "test" in logged:
                found.append((row["wall_clock_time"], 1.0 - row["validation_loss"], logged["test"]))
    out.write_text(json.dumps(sorted(found)))
    best = max(found, key=lambda each: each[1], default=(0.0, 0.0, 0.0))
    print(f"  {name}: {len(found)} models in {time.process_time() - began:.0f} s, {best}", file=sys.stderr)


if __name__ == "__main__":
    main()
