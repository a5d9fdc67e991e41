"""Pictures per second of a whole trial's training on a GPU, against what the GPU gives to the same network.

    python benchmarks/gpu_loop.py [--seconds 12] [--pictures 20000] [--only WORD] [--json PATH]

"The trial" is `easel.match.loop.fit` as a trial calls it: mixed precision, validation on a fifth as many pictures after
every epoch, checkpoints on the disk. "The GPU gives" is the same network on one large batch that lies on the GPU, forward,
loss, backward and AdamW step, over and over (benchmarks/gpu_zoo.py): started by the host, and recorded as a graph. Needs torch and safetensors alone. Without a GPU
it runs in a small form on the CPU and says so.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch

from benchmarks.gpu_zoo import train_rate
from easel.match.device import training_device
from easel.match.device_data import ByteScale, Data
from easel.match.loop import Schedule, fit
from easel.match.objectives import ClassObjective
from easel.match.zoo.images import build_image_network

ROWS = {
    "convnet ×0.25, 28 × 28": ("convnet", (1, 28, 28), 0.25, (4096, 2048)),
    "convnet, 32 × 32": ("convnet", (3, 32, 32), 1.0, (4096, 2048)),
    "resnet18, 32 × 32": ("resnet18", (3, 32, 32), 1.0, (4096, 1024)),
    "resnet50, 224 × 224": ("resnet50", (3, 224, 224), 1.0, (512, 256)),
}
BEFORE = {
    "convnet ×0.25, 28 × 28": 4258,
    "convnet, 32 × 32": 4607,
    "resnet18, 32 × 32": 3477,
    "resnet50, 224 × 224": 496,
}


def trial_rate(
    name: str, shape: tuple[int, int, int], width: float, pictures: int, seconds: float
) -> tuple[float, int, float]:
    """Returns training pictures per second of a whole training that takes about `seconds`, its epochs, and how much
    longer the first training of a process takes: kernels are built and algorithms are chosen."""
    torch.manual_seed(0)
    count = pictures + pictures // 5
    values = ((torch.arange(256) - 127.5) / 73.6).repeat(shape[0], 1)
    data = Data(  # in bytes, as a trial keeps pictures for a GPU
        {"x": torch.randint(256, (count, *shape), dtype=torch.uint8)},
        {"y": torch.randint(10, (count,))},
        scales={"x": ByteScale(values)},
    )

    def run(epochs: int, until: int | None = None) -> float:
        network = build_image_network(name, shape, outputs=10, width=width)
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            there = data.resident(training_device())  # as a trial does, once for all its folds
            train = there.only(torch.arange(pictures))
            validate = there.only(torch.arange(pictures, pictures + pictures // 5))
            fit(
                network,
                train,
                validate,
                ClassObjective(),
                Schedule(epochs, 1e-3, patience=10**6, until=until),
                seed=0,
                out_of_time=lambda: False,
                checkpoint=Path(folder) / "round-0.safetensors",
            )
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            return time.perf_counter() - began

    most, few = (200, 3) if torch.cuda.is_available() else (2, 1)
    first = run(most, few)
    again = run(most, few)
    epochs = max(2, min(most, math.ceil(few * seconds / again)))
    return epochs * pictures / run(epochs), epochs, first - again


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seconds", type=float, default=12.0)
    asked.add_argument("--pictures", type=int, default=20_000)
    asked.add_argument("--only", default="", help="rows that have this in their names")
    asked.add_argument("--json", type=Path)
    given = asked.parse_args()
    gpu = torch.cuda.is_available()
    if not gpu:
        print("no GPU here: a small form on the CPU, to show that it runs")
    device = torch.device("cuda" if gpu else "cpu")
    found = []
    for row, (name, shape, width, ladder) in ROWS.items():
        if (not gpu and shape[1] > 32) or given.only not in row:
            continue
        pictures = given.pictures if gpu else 256
        torch.backends.cudnn.benchmark = True  # the most that the GPU gives; trials search only where it pays
        eager, recorded = (
            max(
                train_rate(name, shape, batch, device, 1.5 if gpu else 0.1, width, record=record)
                for batch in (ladder if gpu else (32,))
            )
            for record in (False, True)
        )
        gives = max(eager, recorded)
        torch.backends.cudnn.benchmark = False
        rate, epochs, extra = trial_rate(name, shape, width, pictures, given.seconds if gpu else 0.1)
        found.append(
            {
                "row": row,
                "trial": round(rate),
                "gpu": round(gives),
                "gpu_eager": round(eager),
                "share": rate / gives,
                "share_of_eager": rate / eager,
                "before": BEFORE[row],
                "epochs": epochs,
                "first_takes_longer_s": round(extra, 2),
            }
        )
        print(
            f"| {row} | {rate:,.0f} | {gives:,.0f} ({eager:,.0f} from the host) | {rate / gives:.0%} "
            f"({rate / eager:.0%}) | before: {BEFORE[row]:,} | "
            f"{epochs} epochs | the first one {extra:.1f} s longer |",
            flush=True,
        )
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
