"""Is the runtime model right about GPUs? Real training runs with and without one, half of them held out.

    python benchmarks/gpu_provision.py measure --out runs.csv     (where there is a GPU; needs torch alone)
    python -m benchmarks.gpu_provision judge --runs runs.csv

Each run is a process of its own that starts Python, imports torch, wakes the GPU where it has one, and trains a small
convolutional network on made-up pictures: so the constant part of a run is in the measurement, as it is in a job.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import os
import random
import subprocess
import sys
import time
from pathlib import Path

PROFILE_STEPS, HELD_STEPS = (20, 40, 80), (30, 60, 120)
CPUS, GPUS = (1, 2, 4), (0, 1)
TRAIN = """
import sys, torch
steps, threads, gpu = (int(x) for x in sys.argv[1:])
torch.set_num_threads(threads)
device = torch.device("cuda" if gpu else "cpu")
torch.manual_seed(0)
layers, width = [], 3
for wide in (32, 64, 128):
    layers += [torch.nn.Conv2d(width, wide, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2)]
    width = wide
network = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(128 * 16, 10)).to(device)
optimiser = torch.optim.AdamW(network.parameters())
for _ in range(steps):
    x, y = torch.randn(256, 3, 32, 32, device=device), torch.randint(10, (256,), device=device)
    loss = torch.nn.functional.cross_entropy(network(x), y)
    optimiser.zero_grad(); loss.backward(); optimiser.step()
print(float(loss))
"""


def measure(out: Path) -> None:
    cells = [("profile", *c) for c in itertools.product(PROFILE_STEPS, CPUS, GPUS)]
    cells += [("held-out", *c) for c in itertools.product(HELD_STEPS, CPUS, GPUS)]
    random.Random(0).shuffle(cells)
    available = sorted(os.sched_getaffinity(0))
    subprocess.run(
        [sys.executable, "-c", TRAIN, "5", "1", "1"], check=True, capture_output=True
    )  # disk cache
    with out.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["part", "steps", "cpus", "gpus", "wall_s"])
        for part, steps, cpus, gpus in cells:
            mask = ",".join(str(core) for core in available[:cpus])
            command = ["taskset", "-c", mask, sys.executable, "-c", TRAIN, str(steps), str(cpus), str(gpus)]
            environment = {**os.environ, "OMP_NUM_THREADS": str(cpus)}
            began = time.monotonic()
            subprocess.run(command, check=True, capture_output=True, env=environment)
            row = [part, steps, cpus, gpus, f"{time.monotonic() - began:.4f}"]
            table.writerow(row)
            file.flush()
            print(*row, flush=True)


def judge(runs: Path) -> None:
    import numpy as np

    from easel.price.design import d_optimal, default_size
    from easel.price.runs import ProfiledRun, RunOutcome
    from easel.price.runtime import learn, learn_log_linear

    with runs.open(newline="") as file:
        rows = list(csv.DictReader(file))

    def features(row: dict[str, str]) -> dict[str, float]:
        return {"steps": float(row["steps"]), "cpus": float(row["cpus"]), "gpus": float(row["gpus"])}

    parts = {
        part: [
            ProfiledRun(features(r), RunOutcome.FINISHED, float(r["wall_s"]))
            for r in rows
            if r["part"] == part
        ]
        for part in ("profile", "held-out")
    }
    profile, held = parts["profile"], parts["held-out"]
    cells = [dict(run.features) for run in profile]
    half = [profile[i] for i in d_optimal(cells, min(len(cells) // 2, default_size(cells)))]
    truth = np.array([run.seconds for run in held])
    for name, model in (
        (f"default, {len(half)} runs", learn(half)),
        (f"default, {len(profile)} runs", learn(profile)),
        (f"log-linear, {len(profile)} runs", learn_log_linear(profile)),
    ):
        prediction = model.predict([run.features for run in held])
        left = ((truth - prediction.seconds) ** 2).sum() / ((truth - truth.mean()) ** 2).sum()
        low, high = prediction.interval(0.9)
        covered = np.mean((low <= truth) & (truth <= high))
        off = np.median(np.abs(prediction.seconds / truth - 1))
        print(
            f"{name:<24} R² {1 - left:.4f}, median error {off:.1%}, 90 % intervals cover {covered:.0%}, {model.chosen}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("measure", "judge"))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--runs", type=Path)
    asked = parser.parse_args()
    measure(asked.out) if asked.what == "measure" else judge(asked.runs)


if __name__ == "__main__":
    main()
