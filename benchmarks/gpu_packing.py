"""Small trials on one GPU: many at once as one program, against one after another.

    python benchmarks/gpu_packing.py [--epochs 12] [--json PATH]

A small convolutional network on 5,000 pictures of 28 × 28 in ten classes (drawn here: blurred blobs at a place that
the class says), batches of 64, AdamW. "Alone" is `easel.match.loop.fit`; "together" is `easel.match.packed.fit_together`.
Needs torch and safetensors alone. Without a GPU it runs in a small form on the CPU and says so.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import torch

from easel.match.device import training_device
from easel.match.device_data import Data
from easel.match.loop import Diverged, Schedule, fit
from easel.match.objectives import ClassObjective
from easel.match.packed import PackedMember, fit_together
from easel.match.zoo.images import build_image_network

TODAY_S_A_STEP = 0.015
"""One step of the former loop on the same GPU, as the issue measured it."""


def pictures(count: int) -> Data:
    torch.manual_seed(0)
    y = torch.randint(10, (count,))
    x = torch.randn(count, 1, 28, 28)
    rows, columns = 4 + 4 * (y // 2), 6 + 14 * (y % 2)
    for dr in range(4):
        for dc in range(4):
            x[torch.arange(count), 0, rows + dr, columns + dc] += 0.9
    return Data({"x": x}, {"y": y})


def seconds_of(run: object) -> float:
    began = time.perf_counter()
    run()  # type: ignore[operator]
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - began


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--epochs", type=int, default=12)
    asked.add_argument("--json", type=Path)
    given = asked.parse_args()
    gpu = torch.cuda.is_available()
    if not gpu:
        print("no GPU here: a small form on the CPU, to show that it runs")
    count, many, epochs = (5000, 64, given.epochs) if gpu else (300, 4, 2)
    data = pictures(count).resident(training_device())
    order = torch.randperm(count, generator=torch.Generator().manual_seed(1))
    folds = [
        (
            torch.cat([order[: count // 5 * i], order[count // 5 * (i + 1) :]]),
            order[count // 5 * i : count // 5 * (i + 1)],
        )
        for i in range(5)
    ]

    def network() -> torch.nn.Module:
        return build_image_network("convnet", (1, 28, 28), 10, 0.25)

    def alone(fold: int, rate: float, seed: int) -> float:
        train, validate = (data.only(rows) for rows in folds[fold])
        schedule = Schedule(epochs, rate, patience=10**6)
        return fit(
            network(), train, validate, ClassObjective(), schedule, seed=seed, out_of_time=lambda: False
        ).best_loss

    def together(members: list[tuple[int, float]], seed: int) -> list[float]:
        pack = [
            PackedMember(network(), *folds[fold], Schedule(epochs, rate, patience=10**6))
            for fold, rate in members
        ]
        runs = fit_together(pack, data, ClassObjective(), seed=seed)
        return [float("nan") if isinstance(run, Diverged) else run.best_loss for run in runs]

    # Kernels are built once on a machine and kept on its disk: both sides begin with theirs.
    alone(0, 1e-3, 0)
    together([(f, 1e-3) for f in range(5)], 1)
    one = min(seconds_of(lambda seed=seed: alone(0, 1e-3, seed)) for seed in range(3))
    losses: dict[str, list[float]] = {}
    five = min(
        seconds_of(lambda seed=seed: losses.update(five=together([(f, 1e-3) for f in range(5)], seed)))
        for seed in range(3)
    )
    rates = [1e-3] * many
    packed = {}
    for size in (8, many):
        packed[size] = seconds_of(
            lambda size=size: losses.update({str(size): together([(0, r) for r in rates[:size]], 0)})
        )
    solo = [alone(0, 1e-3, seed) for seed in range(3)]
    steps = epochs * (len(folds[0][0]) // 64)
    found = {
        "one_s": one,
        "five_folds_s": five,
        "five_folds_ratio": five / one,
        "packed_s": packed,
        "trials_per_hour_ratio": many * one / packed[many],
        "against_the_former_loop": many * steps * TODAY_S_A_STEP / packed[many],
        "loss_alone": solo,
        "loss_packed_mean": sum(losses[str(many)]) / many,
        "loss_packed_range": [min(losses[str(many)]), max(losses[str(many)])],
    }
    print(json.dumps(found, indent=1))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
