"""A random forest on handwritten digits, as an ordinary user would write it: a job to be profiled."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--trees", type=int, required=True)
    options.add_argument("--rows", type=int, default=4000)
    options.add_argument("--data", type=Path, required=True, help="gzipped CSV: label, p0..p783")
    asked = options.parse_args()

    table = np.loadtxt(asked.data, delimiter=",", skiprows=1, dtype=np.uint8)
    table = table[np.random.default_rng(0).permutation(len(table))]
    pixels, labels = table[:, 1:].astype(np.float32), table[:, 0]
    threads = int(os.environ.get("OMP_NUM_THREADS", "1"))
    forest = RandomForestClassifier(n_estimators=asked.trees, n_jobs=threads, random_state=0)
    forest.fit(pixels[: asked.rows], labels[: asked.rows])
    print(f"accuracy {forest.score(pixels[4000:], labels[4000:]):.4f}")


if __name__ == "__main__":
    main()
