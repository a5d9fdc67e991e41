"""Where the time of a training step and of a whole trial goes on a GPU.

    python benchmarks/gpu_profile.py [--only steps trials grouped large] [--out FOLDER]

`steps`: kernels of one recorded step of the small networks, alone and five together. `trials`: the seconds of a trial's
parts (recording, epochs, validation, checkpoints). `grouped`: convolutions of five small networks as groups of one, against
the five one after another. `large`: kernels of one step of the large networks at 224 pixels. Needs torch and safetensors alone.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
from torch import nn

from easel.match import checkpoint, loop, packed_branches, packed_merged, train_steps, validation
from easel.match.device import training_device
from easel.match.device_data import ByteScale, Data
from easel.match.loop import Schedule, batch_for, fit
from easel.match.objectives import ClassObjective
from easel.match.packed import PackedMember, fit_together
from easel.match.zoo.images import build_image_network

spent: dict[str, float] = defaultdict(float)


@contextmanager
def timed(name: str) -> Iterator[None]:
    torch.cuda.synchronize()
    began = time.perf_counter()
    try:
        yield
    finally:
        torch.cuda.synchronize()
        spent[name] += time.perf_counter() - began


def watch(owner: Any, name: str, label: str) -> None:
    real = getattr(owner, name)

    @functools.wraps(real)
    def called(*given: Any, **named: Any) -> Any:
        with timed(label):
            return real(*given, **named)

    setattr(owner, name, called)


def some_data(shape: tuple[int, int, int], count: int) -> Data:
    values = ((torch.arange(256) - 127.5) / 73.6).repeat(shape[0], 1)
    return Data(
        {"x": torch.randint(256, (count, *shape), dtype=torch.uint8)},
        {"y": torch.randint(10, (count,))},
        scales={"x": ByteScale(values)},
    )


def kernels_of(work: Callable[[], object], times: int = 5) -> dict[str, Any]:
    """Returns how many kernels the work starts, what they take, and those that take most."""
    work()
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(times):
        work()
    torch.cuda.synchronize()
    wall = (time.perf_counter() - began) / times
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as found:
        for _ in range(times):
            work()
        torch.cuda.synchronize()
    rows = [
        (one.key, one.count / times, one.self_device_time_total / times)
        for one in found.key_averages()
        if one.self_device_time_total
    ]
    rows.sort(key=lambda row: -row[2])
    return {
        "wall_us": wall * 1e6,
        "kernels": sum(count for _, count, _ in rows),
        "busy_us": sum(us for _, _, us in rows),
        "most": [[name[:110], round(count, 2), round(us, 1)] for name, count, us in rows[:45]],
    }


def steps_section() -> dict[str, Any]:
    device, found = training_device(), {}
    for name, shape, width, batch in (
        ("convnet x0.25 batch 64", (1, 28, 28), 0.25, 64),
        ("convnet x0.25 batch 512", (1, 28, 28), 0.25, 512),
        ("convnet x0.25 batch 1024", (1, 28, 28), 0.25, 1024),
        ("convnet batch 512", (3, 32, 32), 1.0, 512),
        ("convnet batch 1024", (3, 32, 32), 1.0, 1024),
    ):
        data = some_data(shape, 20_000).resident(device)
        training = loop._Training(
            build_image_network("convnet", shape, 10, width),
            data,
            ClassObjective(),
            Schedule(100, 1e-3),
            lambda one: one,
            device,
        )
        training._batch = batch
        training._network.train()
        steps = 10
        graph = training._recorded(steps)
        order = torch.randperm(len(data), device=device)[: steps * batch].view(steps, batch)
        rates = [1e-3] * steps
        made = kernels_of(functools.partial(graph.run, order, rates))
        made["per_step"] = {key: made[key] / steps for key in ("wall_us", "kernels", "busy_us")}
        found[name] = made
        print(name, made["per_step"], type(graph).__name__, flush=True)
    data = some_data((1, 28, 28), 5000).resident(device)
    kinds: tuple[type[packed_merged.MergedPack | packed_branches.BranchedPack], ...] = (
        packed_merged.MergedPack,
        packed_branches.BranchedPack,
    )
    for kind in kinds:
        pack = kind(folds_of(5), data, ClassObjective())
        made = kernels_of(functools.partial(pack.epoch, 0, 0), 3)
        made["per_step"] = {key: made[key] / pack._steps for key in ("wall_us", "kernels", "busy_us")}
        found[kind.__name__] = made
        print(kind.__name__, made["per_step"], flush=True)
    return found


def folds_of(count: int) -> list[PackedMember]:
    order = torch.randperm(5000)
    return [
        PackedMember(
            build_image_network("convnet", (1, 28, 28), 10, 0.25),
            torch.cat([order[: 1000 * i], order[1000 * (i + 1) :]]),
            order[1000 * i : 1000 * (i + 1)],
            Schedule(12, 1e-3, patience=10**6),
        )
        for i in range(count)
    ]


def trials_section() -> dict[str, Any]:
    watch(train_steps.GraphSteps, "__init__", "record the step")
    watch(validation.Validation, "_recorded", "record the validation")
    watch(loop._Training, "_whole", "epochs with recording")
    watch(validation.Validation, "loss", "validation with recording")
    watch(checkpoint.CheckpointWriter, "close", "wait for checkpoints")
    for owner in (packed_branches.BranchedPack, packed_merged.MergedPack):
        watch(owner, "__init__", "pack: begin")
        watch(owner, "_recorded", "pack: record")
        watch(owner, "epoch", "pack: epochs with recording")
        watch(owner, "validated", "pack: validation with recording")
        watch(owner, "keep", "pack: keep")
    loop._weights = _watched(loop._weights, "keep weights")
    vars(loop)["snapshot"] = _watched(checkpoint.snapshot, "snapshot")
    found: dict[str, Any] = {}
    for name, shape, width, epochs in (
        ("convnet x0.25", (1, 28, 28), 0.25, 100),
        ("convnet", (3, 32, 32), 1.0, 60),
    ):
        data = some_data(shape, 24_000)
        for turn in range(2):
            spent.clear()
            began = time.perf_counter()
            there = data.resident(training_device())
            torch.cuda.synchronize()
            spent["data"] += time.perf_counter() - began
            with tempfile.TemporaryDirectory() as folder:
                fit(
                    build_image_network("convnet", shape, 10, width),
                    there.only(torch.arange(20_000)),
                    there.only(torch.arange(20_000, 24_000)),
                    ClassObjective(),
                    Schedule(epochs, 1e-3, patience=10**6),
                    seed=0,
                    out_of_time=lambda: False,
                    checkpoint=Path(folder) / "round-0.safetensors",
                )
            torch.cuda.synchronize()
            spent["all"] += time.perf_counter() - began
            spent["batch"] = batch_for(64, 20_000, training_device(), epochs)
            found[f"{name}, {epochs} epochs, turn {turn}"] = dict(spent)
            print(name, turn, {k: round(v, 3) for k, v in spent.items()}, flush=True)
    data = some_data((1, 28, 28), 5000).resident(training_device())
    for count in (1, 1, 5, 5):
        spent.clear()
        with timed("all"):
            members = folds_of(count)
            if count == 1:
                fit(
                    members[0].network,
                    data.only(members[0].train),
                    data.only(members[0].validate),
                    ClassObjective(),
                    members[0].schedule,
                    seed=0,
                    out_of_time=lambda: False,
                )
            else:
                fit_together(members, data, ClassObjective(), seed=0)
        found[f"{count} folds {len(found)}"] = dict(spent)
        print(count, "folds", {k: round(v, 4) for k, v in spent.items()}, flush=True)
    return found


def _watched(real: Callable[..., Any], label: str) -> Callable[..., Any]:
    def called(*given: Any, **named: Any) -> Any:
        with timed(label):
            return real(*given, **named)

    return called


def grouped_section() -> dict[str, Any]:
    device, found = training_device(), {}
    for inside, out, side in ((1, 8, 28), (8, 8, 14), (8, 16, 14), (16, 16, 7), (16, 32, 7), (32, 32, 3)):
        for groups in (1, 5):
            layer = nn.Conv2d(groups * inside, groups * out, 3, padding=1, groups=groups, bias=False)
            layer = layer.to(device=device, dtype=torch.bfloat16)
            layer.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's types forget it
            x = torch.randn(64, groups * inside, side, side, device=device, dtype=torch.bfloat16)
            x = x.to(memory_format=torch.channels_last).requires_grad_()
            dy = torch.randn_like(layer(x))

            def forth(layer: nn.Module = layer, x: torch.Tensor = x) -> None:
                layer(x)

            def back(layer: nn.Module = layer, x: torch.Tensor = x, dy: torch.Tensor = dy) -> None:
                torch.autograd.grad(layer(x), [x, *layer.parameters()], dy)

            row = {"forth": kernels_of(forth), "forth and back": kernels_of(back)}
            found[f"{inside}->{out} at {side}, {groups} groups"] = row
            print(
                inside,
                out,
                side,
                groups,
                {k: (v["kernels"], round(v["busy_us"], 1)) for k, v in row.items()},
                flush=True,
            )
    return found


def large_section() -> dict[str, Any]:
    from benchmarks.gpu_torchvision import ours, step_of, theirs

    device, found = torch.device("cuda"), {}
    torch.backends.cudnn.benchmark = True
    for name, other in (("vgg16", "vgg16"), ("alexnet", "alexnet"), ("squeezenet", "squeezenet1_1")):
        for who, network in (("ours", ours(name, 224)), ("theirs", theirs(other))):
            made = kernels_of(step_of(network, 512, 224, device, False), 2)
            found[f"{name} {who}"] = made
            print(name, who, {k: round(made[k]) for k in ("wall_us", "kernels", "busy_us")}, flush=True)
            torch.cuda.empty_cache()
    return found


SECTIONS: dict[str, Callable[[], dict[str, Any]]] = {
    "steps": steps_section,
    "grouped": grouped_section,
    "large": large_section,
    "trials": trials_section,
}


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--only", nargs="*", default=list(SECTIONS), choices=list(SECTIONS))
    asked.add_argument("--out", type=Path, default=Path())
    given = asked.parse_args()
    if not torch.cuda.is_available():
        print("no GPU here: there is nothing to look at")
        return
    for name in given.only:
        began = time.perf_counter()
        (given.out / f"profile_{name}.json").write_text(json.dumps(SECTIONS[name](), indent=1))
        print(f"{name}: {time.perf_counter() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
