"""Networks over series on a GPU: what a whole trial reaches, and its seconds, against the same trial on the host's cores.

    python benchmarks/gpu_series.py --data FOLDER [--families fcn lstm gru] [--copies 1] [--json PATH]

`FOLDER` holds the UCR and UEA sets (`GunPoint.csv.gz`, …: `split`, `case`, `label`, `channel`, `t0` …). Each row is
`easel.match.train.train`, as a trial of an app runs it: fixed folds, the fold that scores it never seen.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import numpy as np
import torch

from easel.declare.parse import parse_program
from easel.match.candidate import Candidate
from easel.match.device import training_device
from easel.match.read import read_example
from easel.match.split import assign_folds
from easel.match.train import Conditions, train


def series(path: Path) -> tuple[list[np.ndarray], list[str]]:
    """Returns `(steps, channels)` of each case, and its class."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    steps = [column for column in rows[0] if column[0] == "t" and column[1:].isdigit()]
    cases: dict[tuple[str, str, str], list[list[float]]] = {}
    for row in rows:
        values = [float(row[step]) for step in steps if row[step] != ""]
        cases.setdefault((row["split"], row["case"], row["label"]), []).append(values)
    return [np.array(channels).T for channels in cases.values()], [f"c{key[2]}" for key in cases]


def measure(name: str, x: list[np.ndarray], y: list[str], family: str) -> dict[str, Any]:
    classes = ", ".join(sorted(set(y)))
    program = parse_program(
        f"{{input: {{[Tensor[{x[0].shape[1]}]], [next]}}, output: {{[Category[{classes}]], []}}}}"
    )
    examples = [read_example(program, one, label) for one, label in zip(x, y, strict=True)]
    folds = assign_folds(y)
    candidate = Candidate(family, (("lr", 3e-3), ("width", 1.0)))
    began = time.perf_counter()
    trained = train(
        candidate, program, examples, folds, Conditions(seed=0, budget_s=100.0, clock=time.monotonic)
    )
    return {
        "data": name,
        "family": family,
        "device": training_device().type,
        "quality": round(trained.measurement.quality, 4),
        "seconds": round(time.perf_counter() - began, 2),
    }


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--data", type=Path, required=True)
    asked.add_argument("--families", nargs="*", default=["fcn", "lstm", "gru"])
    asked.add_argument("--only", default="")
    asked.add_argument("--json", type=Path)
    given = asked.parse_args()
    rows = []
    for path in sorted(given.data.glob("*.csv.gz")):
        name = path.name.split(".")[0]
        if name.startswith("mnist") or given.only not in name:
            continue
        x, y = series(path)
        for family in given.families:
            rows.append(measure(name, x, y, family))
            print(json.dumps(rows[-1]), flush=True)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    if not torch.cuda.is_available():
        print("no GPU here: the seconds are those of the host's cores")
    main()
