"""A small network on handwritten digits: the script whose price we want to know."""

from __future__ import annotations

import argparse
import warnings

from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

options = argparse.ArgumentParser()
options.add_argument("--epoch", type=int, required=True)
options.add_argument("--batch-size", type=int, default=256)
options.add_argument("--learning-rate", type=float, default=0.001)
asked = options.parse_args()

pictures, digits = load_digits(return_X_y=True)
network = MLPClassifier(
    (512, 512),
    batch_size=asked.batch_size,
    learning_rate_init=asked.learning_rate,
    max_iter=asked.epoch,
    n_iter_no_change=asked.epoch,
    tol=0.0,
    random_state=0,
)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)  # the number of epochs is the point
    network.fit(pictures[:1500] / 16, digits[:1500])
print(f"[EASEL_TAG_NUM] job accuracy:{network.score(pictures[1500:] / 16, digits[1500:]):.4f}")
