"""Images per second while training each image network of the zoo against torchvision's own, on a GPU.

    python benchmarks/gpu_torchvision.py [--seconds 3] [--only NAME …] [--compile] [--side 224] [--json PATH]

Both take the same step (forward, loss, backward, fused AdamW, bfloat16 autocast, channels-last, batches of 512, cuDNN's search
for algorithms); torchvision's network is as it comes, with ten classes. `recorded` is ours as a trial replays it. `--compile` also measures ours after `torch.compile`
and says how long its first steps took; a second run on the same machine finds the compiler's cache. Needs torch and torchvision
alone. Without a GPU it runs in a small form on the CPU and says so.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import torch
from torch import nn

from easel.match.train_steps import autocast
from easel.match.zoo.images import build_image_network

PAIRS = {
    "alexnet": ("alexnet",),
    "resnet18": ("resnet18",),
    "resnet50": ("resnet50",),
    "googlenet": ("googlenet",),
    "squeezenet": ("squeezenet1_1",),
    "vgg16": ("vgg16", "vgg16_bn"),
}
"""Ours have batch norm where the paper's did not learn without: VGG-16 and SqueezeNet are measured against plain ones."""


def theirs(name: str) -> nn.Module:
    import torchvision  # type: ignore[import-not-found]  # brought by whoever compares

    more = {"aux_logits": False, "init_weights": False} if name == "googlenet" else {}
    network: nn.Module = getattr(torchvision.models, name)(num_classes=10, **more)
    return network


def ours(name: str, side: int) -> nn.Module:
    return build_image_network(name, (3, side, side), 10)


def step_of(
    network: nn.Module, batch: int, side: int, device: torch.device, compiled: bool
) -> Callable[[], None]:
    network.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimiser = torch.optim.AdamW(
        network.parameters(), lr=1e-4, fused=device.type == "cuda", capturable=device.type == "cuda"
    )
    x = torch.randn(batch, 3, side, side, device=device).to(memory_format=torch.channels_last)
    y = torch.randint(10, (batch,), device=device)
    called = torch.compile(network) if compiled else network
    loss_of = nn.CrossEntropyLoss()

    def step() -> None:
        with autocast(device):
            loss = loss_of(called(x).float(), y)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()

    return step


def recorded(step: Callable[[], None], device: torch.device) -> Callable[[], None]:
    """Returns the step as a trial takes it on a GPU: as a graph that is replayed."""
    if device.type != "cuda":
        return step
    beside, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()  # type: ignore[no-untyped-call]
    with torch.cuda.stream(beside):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(beside)
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def rate(step: Callable[[], None], batch: int, seconds: float, device: torch.device) -> tuple[float, float]:
    """Returns images per second, and the seconds of the first steps."""

    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize()

    began = time.perf_counter()
    for _ in range(3 if device.type == "cuda" else 1):
        step()
    wait()
    first = time.perf_counter() - began
    began, steps = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        for _ in range(3):
            step()
        wait()
        steps += 3
    return steps * batch / (time.perf_counter() - began), first


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--seconds", type=float, default=3.0)
    asked.add_argument("--only", nargs="*", default=list(PAIRS), choices=list(PAIRS))
    asked.add_argument("--compile", action="store_true")
    asked.add_argument("--side", type=int, default=224)
    asked.add_argument("--json", type=Path)
    given = asked.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    batch = 512 if device.type == "cuda" else 2
    if device.type == "cpu":
        print("no GPU here: a small form on the CPU, to show that it runs")
    torch.backends.cudnn.benchmark = True
    found = []
    for name in given.only:
        torch.manual_seed(0)
        row: dict[str, float | str] = {"network": name}
        row["ours"], _ = rate(
            step_of(ours(name, given.side), batch, given.side, device, False), batch, given.seconds, device
        )
        for other in PAIRS[name]:
            row[other], _ = rate(
                step_of(theirs(other), batch, given.side, device, False), batch, given.seconds, device
            )
            row[f"against {other}"] = float(row["ours"]) / float(row[other])
        row["recorded"], _ = rate(
            recorded(step_of(ours(name, given.side), batch, given.side, device, False), device),
            batch,
            given.seconds,
            device,
        )
        row[f"recorded against {PAIRS[name][0]}"] = float(row["recorded"]) / float(row[PAIRS[name][0]])
        if given.compile:
            made = step_of(ours(name, given.side), batch, given.side, device, True)
            row["compiled"], row["first steps, s"] = rate(made, batch, given.seconds, device)
            for other in PAIRS[name]:
                row[f"compiled against {other}"] = float(row["compiled"]) / float(row[other])
            torch.compiler.reset()
        found.append(
            {key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()}
        )
        print(json.dumps(found[-1]), flush=True)
        if device.type == "cuda":
            torch.cuda.empty_cache()
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
