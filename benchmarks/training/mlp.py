"""A multi-layer perceptron on handwritten digits, as an ordinary user would write it: a job to be
profiled.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--epochs", type=int, required=True)
    options.add_argument("--rows", type=int, default=4000)
    options.add_argument("--batch-size", type=int, default=256)
    options.add_argument("--data", type=Path, required=True, help="gzipped CSV: label, p0..p783")
    asked = options.parse_args()

    table = np.loadtxt(asked.data, delimiter=",", skiprows=1, dtype=np.uint8)
    table = table[np.random.default_rng(0).permutation(len(table))]
    pixels, labels = (table[:, 1:] / 255.0).astype(np.float32), table[:, 0]
    network = MLPClassifier(
        (256, 256), batch_size=asked.batch_size, max_iter=asked.epochs, tol=0.0, n_iter_no_change=10**6
    )
    network.set_params(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the epochs are the point, not convergence
        network.fit(pixels[: asked.rows], labels[: asked.rows])
    print(f"accuracy {network.score(pixels[4000:], labels[4000:]):.4f}")


if __name__ == "__main__":
    main()
