"""Whether batches that grow with the device keep the accuracy: real digits, batches of 64 and larger, the same epochs.

    python benchmarks/gpu_batches.py --data FOLDER [--copies 5] [--json PATH]

MNIST-5k (`mnist_5k.csv.gz` in FOLDER), of which a fifth in turn is never learned from. The other 4,000 pictures are there
`copies` times, each bent differently once and for all, so that an epoch has as many steps as one of 20,000 pictures. One
convnet a fold and batch size, by `easel.match.loop.fit` with its own rule for the learning rate.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch

from benchmarks.gpu_networks import pictures
from easel.match import loop
from easel.match.augment import augmentation
from easel.match.device import training_device
from easel.match.device_data import Data
from easel.match.loop import Schedule, batch_for, fit, predict
from easel.match.objectives import ClassObjective
from easel.match.split import FOLDS, assign_folds
from easel.match.zoo.images import build_image_network


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--data", type=Path, required=True)
    asked.add_argument("--copies", type=int, default=5)
    asked.add_argument("--epochs", type=int, default=24)
    asked.add_argument("--width", type=float, default=0.5)
    asked.add_argument("--json", type=Path)
    given = asked.parse_args()
    found = pictures("mnist_5k", given.data)
    if found is None:
        sys.exit("mnist_5k.csv.gz is not there")
    device = training_device()
    x = torch.from_numpy(found[0]).float().unsqueeze(1).div(127.5).sub(1).to(device)
    y = torch.from_numpy(found[1]).long().to(device)
    folds = torch.tensor(assign_folds([str(digit) for digit in found[1]]), device=device)
    warp, rows = augmentation("warp"), []
    own = batch_for(64, given.copies * 4000, device, given.epochs)
    print(f"the rule gives batches of {own}")
    for batch in (64, 128, 256, 512, 1024):
        right, losses, began = 0, [], time.perf_counter()
        for fold in range(FOLDS):
            torch.manual_seed(fold)
            learn, test = ((folds != fold).nonzero()[:, 0], (folds == fold).nonzero()[:, 0])
            many = torch.cat([warp({"x": x[learn]})["x"] for _ in range(given.copies)])
            answers = y[learn].repeat(given.copies)
            held = torch.randperm(len(many), device=device)
            data = Data({"x": many}, {"y": answers})
            network = build_image_network("convnet", (1, 28, 28), 10, given.width)
            real = loop.batch_for
            loop.batch_for = lambda *_, size=batch: size
            try:
                run = fit(
                    network,
                    data.only(held[2000:]),
                    data.only(held[:2000]),
                    ClassObjective(),
                    Schedule(given.epochs, 3e-3),
                    seed=fold,
                    out_of_time=lambda: False,
                )
            finally:
                loop.batch_for = real
            losses.append(run.best_loss)
            right += int((predict(network, {"x": x[test]}).argmax(1) == y[test].cpu()).sum())
        row = {
            "batch": batch,
            "accuracy": right / len(y),
            "loss": sum(losses) / len(losses),
            "seconds": round((time.perf_counter() - began) / FOLDS, 2),
            "the rule's": batch == own,
        }
        rows.append(row)
        print(json.dumps(row), flush=True)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
