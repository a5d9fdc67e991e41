"""Train a two-layer network on pictures of digits: the job that the study tunes. NumPy alone, a second or two."""

import argparse
import csv
import os
from pathlib import Path

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float, required=True)
parser.add_argument("--width", type=int, required=True)
parser.add_argument("--batch", type=int, required=True)
parser.add_argument("--epochs", type=int, required=True)
told = parser.parse_args()


def read(name: str) -> tuple[np.ndarray, np.ndarray]:
    """The platform has drawn the rows already: alike of every digit, the smaller samples inside the larger."""
    with (Path(os.environ["EASEL_INPUT"]) / "digits" / name).open(newline="") as file:
        rows = np.array(list(csv.reader(file))[1:], dtype=float)
    return rows[:, :-1] / 16.0, rows[:, -1].astype(int)


x, digit = read("train.csv")
x_test, digit_test = read("test.csv")
rng = np.random.default_rng(0)
first = rng.normal(0, 0.2, (x.shape[1], told.width))
second = rng.normal(0, 0.2, (told.width, 10))
print(f"{len(x)} pictures to learn from ({os.environ['EASEL_DATA_FRACTION']} of them)")
for epoch in range(1, told.epochs + 1):
    order = rng.permutation(len(x))
    for start in range(0, len(x), told.batch):
        some = order[start : start + told.batch]
        hidden = np.maximum(x[some] @ first, 0.0)
        scores = hidden @ second
        chance = np.exp(scores - scores.max(axis=1, keepdims=True))
        chance /= chance.sum(axis=1, keepdims=True)
        chance[np.arange(len(some)), digit[some]] -= 1.0
        back = (chance @ second.T) * (hidden > 0)
        second -= told.rate * hidden.T @ chance / len(some)
        first -= told.rate * x[some].T @ back / len(some)
    right = (np.maximum(x_test @ first, 0.0) @ second).argmax(axis=1) == digit_test
    print(f"[EASEL_METRIC] accuracy={right.mean()} step={epoch}", flush=True)
