"""Checks our GPU kernels against float64, and times them against the library's.

    python benchmarks/gpu_kernels.py [--json PATH]

Pooling, small convolutions and normalisation, forth and back, for one network and for five at once, on fresh random numbers;
then five small networks trained as one against the same ones beside each other. With `TRITON_INTERPRET=1` the checks run on a
CPU. Exits with 1 where something differs by more than half precision explains.
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
from torch import Tensor
from torch.nn import functional

from easel.match.zoo.fused_norm import batch_norm_relu
from easel.match.zoo.fused_pool import max_pool
from easel.match.zoo.small_conv import small_conv

GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if GPU else "cpu")
HALF = torch.bfloat16 if GPU else torch.float32
MOST = 0.01
"""The largest difference, as a share of the norm."""
rows: list[dict[str, object]] = []


def pixels(*shape: int) -> Tensor:
    made = torch.randn(*shape, device=DEVICE).to(HALF)
    return made.contiguous(memory_format=torch.channels_last).requires_grad_()


def seconds_of(work: Callable[[], object]) -> float:
    """Returns microseconds of the GPU, out of a recorded graph: without what it costs to start from the host."""
    if not GPU:
        return 0.0
    beside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    with torch.cuda.stream(beside):
        for _ in range(3):
            work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    graph.replay()
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(30):
        graph.replay()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / 30 * 1e6


def compare(
    what: str,
    ours: Callable[..., Tensor],
    theirs: Callable[..., Tensor],
    inputs: tuple[Tensor, ...],
) -> None:
    made = ours(*inputs)
    exact = [one.detach().double().requires_grad_() for one in inputs]
    wanted = theirs(*exact)
    dy = torch.randn_like(made).contiguous(memory_format=torch.channels_last)
    pairs = [(made, wanted)]
    pairs += zip(
        torch.autograd.grad(made, inputs, dy), torch.autograd.grad(wanted, exact, dy.double()), strict=True
    )
    worst = max(float((a.detach().double() - b.detach()).norm() / b.detach().norm()) for a, b in pairs)
    fresh = tuple(one.detach().requires_grad_() for one in inputs)  # no node of another stream is left
    del made, wanted, pairs

    def both_ways(function: Callable[..., Tensor]) -> Callable[[], object]:
        return lambda: torch.autograd.grad(function(*fresh), fresh, dy)

    us = [seconds_of(both_ways(function)) for function in (ours, theirs)]
    row = {"what": what, "worst": worst, "ok": worst < MOST, "ours_us": us[0], "library_us": us[1]}
    rows.append(row)
    print(json.dumps(row), flush=True)


def each(members: int, work: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Does it for every member with its own weights, one after another."""

    def done(x: Tensor, *weights: Tensor) -> Tensor:
        parts = x.view(members, -1, *x.shape[1:]).unbind(0)
        return torch.cat([work(part, *(one[i] for one in weights)) for i, part in enumerate(parts)])

    return done


def normalised(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.relu(functional.batch_norm(x, None, None, weight, bias, training=True))


def check_layers() -> None:
    torch.manual_seed(int(time.time()))
    many = 64 if GPU else 2
    for channels, side, window in (
        (8, 28, (2, 2, 0)),
        (64, 56, (2, 2, 0)),
        (64, 55, (3, 2, 1)),
        (192, 28, (3, 1, 1)),
    ):
        if not GPU:
            channels, side = min(channels, 16), min(side, 9)
        compare(
            f"pool {window} of {channels} at {side}",
            lambda x, w=window: max_pool(x, w),
            lambda x, w=window: functional.max_pool2d(x, *w),
            (pixels(many, channels, side, side),),
        )
    for inside, out, side in (
        (1, 8, 28),
        (3, 32, 32),
        (8, 8, 14),
        (8, 16, 14),
        (16, 16, 7),
        (16, 32, 7),
        (32, 32, 3),
        (64, 64, 7),
    ):
        for members in (1, 5):
            count = members * many
            side = side if GPU else min(side, 6)
            x = pixels(count, inside, side, side)
            weight = torch.randn(members, out, 3, 3, inside, device=DEVICE).to(HALF).permute(0, 1, 4, 2, 3)
            compare(
                f"conv {inside} to {out} at {side}, {members} at once",
                small_conv,
                each(members, lambda x, w: functional.conv2d(x, w, padding=1)),
                (x, weight.detach().requires_grad_()),
            )
    for channels, side in ((8, 14), (32, 7), (96, 14)):
        for members in (1, 5):
            side = side if GPU else min(side, 6)
            blocks = members * -(-channels // 64)
            counter = torch.zeros(blocks, dtype=torch.int32, device=DEVICE)
            running = (
                torch.zeros(members, channels, device=DEVICE),
                torch.ones(members, channels, device=DEVICE),
            )
            weight, bias = (torch.randn(members, channels, device=DEVICE).requires_grad_() for _ in range(2))
            compare(
                f"norm of {channels} at {side}, {members} at once",
                lambda x, w, b, r=running, c=counter: batch_norm_relu(x, w, b, None, r, c, (0.1, 1e-5, True)),
                each(members, normalised),
                (pixels(members * many, channels, side, side), weight, bias),
            )


def check_steps() -> None:
    """The loss of classes against the library's, and AdamW over rows against torch's own."""
    from easel.match.zoo.fused_step import adam_step, class_loss

    y = torch.randint(10, (70,), device=DEVICE)
    answers = torch.randn(70, 10, device=DEVICE).requires_grad_()
    exact = answers.detach().double().requires_grad_()
    made, wanted = (
        class_loss(answers, y, 0.1),
        functional.cross_entropy(exact, y, label_smoothing=0.1, reduction="none"),
    )
    pairs = [(made, wanted)]
    pairs += zip(
        torch.autograd.grad(made.mean(), [answers]), torch.autograd.grad(wanted.mean(), [exact]), strict=True
    )
    rows_, count = torch.randn(3, 700, device=DEVICE), 700
    theirs = [torch.nn.Parameter(row.clone()) for row in rows_]
    moments = torch.zeros_like(rows_), torch.zeros_like(rows_)
    places = torch.randperm(3 * count, device=DEVICE)
    read = torch.zeros(3 * count, device=DEVICE)
    half = torch.zeros(3 * count, device=DEVICE, dtype=torch.bfloat16)
    optimisers = [
        torch.optim.AdamW([one], lr=0.01 * (i + 1), weight_decay=0.01) for i, one in enumerate(theirs)
    ]
    for step in range(1, 4):
        gradients = torch.randn(3, count, device=DEVICE)
        for one, gradient, optimiser in zip(theirs, gradients, optimisers, strict=True):
            one.grad = gradient.clone()
            torch.nn.utils.clip_grad_norm_([one], 5.0)
            optimiser.step()
        rates = torch.tensor([0.01, 0.02, 0.03], device=DEVICE).view(3, 1)
        factors = torch.stack(
            [1 - rates * 0.01, -rates / (1 - 0.9**step), torch.full_like(rates, (1 - 0.999**step) ** -0.5)]
        )
        adam_step(rows_, moments, gradients, factors, (places, read, half), (5.0, (0.9, 0.999), 1e-8))
    pairs.append((rows_, torch.stack([one.detach() for one in theirs]).double()))
    pairs.append((read[places].view(3, count), rows_.double()))
    pairs.append((half[places].float().view(3, count), rows_.double()))
    worst = max(float((a.detach().double() - b.detach()).norm() / b.detach().norm()) for a, b in pairs)
    rows.append({"what": "loss and AdamW", "worst": worst, "ok": worst < MOST})
    print(json.dumps(rows[-1]), flush=True)


def check_training() -> None:
    """Five small networks as one and beside each other learn the same from the same pictures."""
    from easel.match import packed, packed_merged
    from easel.match.device_data import Data
    from easel.match.loop import Diverged, Schedule
    from easel.match.objectives import ClassObjective
    from easel.match.packed import PackedMember, fit_together
    from easel.match.zoo.images import build_image_network

    torch.manual_seed(0)
    y = torch.randint(4, (2000,))
    x = torch.randn(2000, 1, 28, 28)
    x[torch.arange(2000), 0, 6 * y] += 0.6
    data = Data({"x": x}, {"y": y}).resident(DEVICE)
    kept = packed_merged.merges
    for name, rule in (("as one", kept), ("beside each other", lambda *_: False)):
        vars(packed)["merges"] = rule
        torch.manual_seed(1)
        members = [
            PackedMember(
                build_image_network("convnet", (1, 28, 28), 4, 0.25),
                torch.arange(1600),
                torch.arange(1600, 2000),
                Schedule(10, 1e-3),
            )
            for _ in range(5)
        ]
        runs = fit_together(members, data, ClassObjective(), seed=0)
        losses = [float("nan") if isinstance(run, Diverged) else run.best_loss for run in runs]
        rows.append({"what": f"training {name}", "losses": losses, "ok": max(losses) < 1.0})
        print(json.dumps(rows[-1]), flush=True)
    vars(packed)["merges"] = kept


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--json", type=Path)
    given = asked.parse_args()
    check_layers()
    check_steps()
    if GPU:
        check_training()
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))
    wrong = [row["what"] for row in rows if not row["ok"]]
    print("all agree" if not wrong else f"they differ: {wrong}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
