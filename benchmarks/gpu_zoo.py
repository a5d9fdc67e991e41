"""Images per second while training each image network of the zoo, on a GPU with mixed precision.

    python benchmarks/gpu_zoo.py [--seconds 3] [--json PATH]

For each network and picture size the largest batch of a short ladder that fits is measured: forward, loss,
backward and an AdamW step under bfloat16 autocast, channels-last, as `easel.match.loop` trains. Needs torch
alone. On a machine without a GPU it runs the same code in a small form on the CPU and says so.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import torch
from torch import nn

from easel.match.zoo.images import IMAGE_NETWORKS, build_image_network

GPU_PLAN = {(3, 32, 32): (4096, 2048, 1024, 256), (3, 224, 224): (512, 256, 128, 32)}
CPU_PLAN = {(3, 32, 32): (4,)}


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def train_rate(
    name: str,
    shape: tuple[int, int, int],
    batch: int,
    device: torch.device,
    seconds: float,
    width: float = 1.0,
    *,
    record: bool = False,
) -> float:
    """Images per second over at least `seconds` of steps, after a warm-up that chooses the algorithms; as a recorded
    graph where asked for, so that the host does not count."""
    torch.manual_seed(0)
    network = build_image_network(name, shape, outputs=10, width=width)
    network.to(device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's types forget it
    on_gpu = device.type == "cuda"
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-4, fused=on_gpu, capturable=on_gpu)
    x = torch.randn(batch, *shape, device=device).to(memory_format=torch.channels_last)
    y = torch.randint(10, (batch,), device=device)
    loss_of = nn.CrossEntropyLoss()

    def one() -> None:
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
            loss = loss_of(network(x), y)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()

    step: Callable[[], None] = one
    burst = 5 if on_gpu else 1
    for _ in range(3 if on_gpu else 1):
        step()
    synchronise(device)
    if record and on_gpu:
        beside, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()  # type: ignore[no-untyped-call]
        with torch.cuda.stream(beside):
            step()
        torch.cuda.current_stream().wait_stream(beside)
        with torch.cuda.graph(graph):
            step()
        step = graph.replay
    began, steps = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - began) < seconds:
        for _ in range(burst):
            step()
        synchronise(device)
        steps += burst
    return steps * batch / elapsed if steps else 0.0


def measure(seconds: float) -> dict[str, object]:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = True
    rows = []
    for shape, ladder in (GPU_PLAN if device.type == "cuda" else CPU_PLAN).items():
        for name in IMAGE_NETWORKS:
            for batch in ladder:
                try:
                    rate = train_rate(name, shape, batch, device, seconds)
                except torch.cuda.OutOfMemoryError:
                    torch.cuda.empty_cache()
                    continue
                rows.append(
                    {"network": name, "shape": list(shape), "batch": batch, "images_per_s": round(rate)}
                )
                print(f"{name:11s} {shape} batch {batch}: {rate:,.0f} images/s", file=sys.stderr, flush=True)
                break
    return {
        "device": torch.cuda.get_device_name() if device.type == "cuda" else platform.processor() or "CPU",
        "torch": torch.__version__,
        "python": platform.python_version(),
        "precision": "bfloat16 autocast" if device.type == "cuda" else "float32 (no GPU here: a dry run)",
        "rows": rows,
    }


def markdown(result: dict[str, object]) -> str:
    """One line a network, one column a picture size."""
    rows = result["rows"]
    assert isinstance(rows, list)
    shapes = list(dict.fromkeys(tuple(row["shape"]) for row in rows))
    rate = {
        (row["network"], tuple(row["shape"])): f"{row['images_per_s']:,} ({row['batch']})" for row in rows
    }
    head = " | ".join("×".join(map(str, shape)) for shape in shapes)
    lines = [f"| network | {head} |", "|---|" + "---:|" * len(shapes)]
    lines += [
        f"| {name} | " + " | ".join(rate.get((name, shape), "–") for shape in shapes) + " |"
        for name in IMAGE_NETWORKS
    ]
    return "\n".join([f"Images/s (batch), training, {result['device']}, torch {result['torch']}", "", *lines])


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--seconds", type=float, default=3.0, help="measured seconds per network and size")
    arguments.add_argument("--json", type=Path, help="also write the figures to this file")
    options = arguments.parse_args()
    result = measure(options.seconds)
    text = json.dumps(result, indent=1)
    if options.json:
        options.json.write_text(text + "\n")
    print(text, markdown(result), sep="\n\n")


if __name__ == "__main__":
    main()
