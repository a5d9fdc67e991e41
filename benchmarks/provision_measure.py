"""Measures real training runs under a CPU quota and a memory limit into a CSV.

    python -m benchmarks.provision_measure --out docs/results/provision_runs.csv [--seconds 240]

Two scripts (`benchmarks/training/`) run over the profiling grid of the paper and over held-out cells with
other epochs, trees, rows and memory. The quota and the limit are those of the cgroups in which Easel runs jobs:
control groups of either version, for which one must be root (or own the groups); without them nothing can be
measured, and the program says so. A run of at most one vCPU has a processor of its own, so two of them run side by
side; runs of two have the machine to themselves. Runs already in the CSV are not measured again, so an interrupted
measurement, or one cut into pieces by `--seconds`, goes on.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from easel.clock import SystemClock
from easel.declare.resources import Resources
from easel.run.cgroup import Cgroups

HERE = Path(__file__).parent
DATA = (
    Path(os.environ.get("EASEL_DATA", HERE.parent.parent / "shared" / "data"))
    / "train_sets"
    / "mnist_5k.csv.gz"
)
CORES = (0, 1)


@dataclass(frozen=True)
class Cell:
    """What is run: `steps` are epochs of the MLP or trees of the forest."""

    part: str  # profile | held-out
    task: str  # mlp | forest
    steps: int
    rows: int
    cpus: float
    memory_mb: int


@dataclass(frozen=True)
class MeasuredRun:
    part: str
    task: str
    steps: int
    rows: int
    cpus: float
    memory_mb: int
    wall_s: float
    cpu_s: float
    peak_mb: float
    load_before: float
    returncode: int


def cells() -> list[Cell]:
    """54 profiling cells a task (3 steps × 2 rows × 3 vCPU × 3 memory), then 36 held-out ones, half of them
    inside the profiled range and half with up to twice the largest number of steps.
    """
    chosen = []
    for task, steps, inside, beyond in (
        ("mlp", (6, 15, 40), (12, 22, 32), (56, 72)),
        ("forest", (30, 80, 200), (60, 110, 170), (260, 360)),
    ):
        grid = itertools.product(steps, (1000, 4000), (0.5, 1.0, 2.0), (512, 1024, 2048))
        chosen += [Cell("profile", task, *cell) for cell in grid]
        rng = random.Random(f"second held-out {task}")
        for values in (inside, beyond):
            others = itertools.product(values, (1700, 2300, 3300), (0.5, 1.0, 2.0), (640, 1280, 3072))
            chosen += [Cell("held-out", task, *cell) for cell in rng.sample(list(others), 18)]
    # A random order: a busy quarter of an hour then touches all kinds of cells alike.
    random.Random(0).shuffle(chosen)
    return chosen


def command(cell: Cell) -> list[str]:
    flag = {"mlp": "--epochs", "forest": "--trees"}[cell.task]
    script = HERE / "training" / f"{cell.task}.py"
    return [sys.executable, str(script), flag, str(cell.steps), "--rows", str(cell.rows), "--data", str(DATA)]


def measure(cell: Cell, cgroups: Cgroups, cores: Sequence[int]) -> MeasuredRun:
    """Runs the cell's command in a cgroup of its size on the given processors."""
    cgroup = cgroups.make(f"run-{cores[0]}-{os.urandom(3).hex()}")
    cgroup.limit(Resources(cell.cpus, cell.memory_mb), 1024)
    load, threads = os.getloadavg()[0], str(math.ceil(cell.cpus))
    process = subprocess.Popen(
        # It waits until it is in its cgroup.
        ["/bin/sh", "-c", 'read go && exec "$@"', "sh", *command(cell)],
        env=os.environ | {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    cgroup.enter(process.pid)
    os.sched_setaffinity(process.pid, cores)
    start = time.perf_counter()
    process.stdin.write(b"go\n")
    process.stdin.close()
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    cgroup.remove()
    return MeasuredRun(
        **asdict(cell),
        wall_s=round(wall, 4),
        cpu_s=round(used.ru_utime + used.ru_stime, 4),
        peak_mb=round(used.ru_maxrss / 1024, 1),
        load_before=round(load, 2),
        returncode=process.returncode,
    )


def _prefer(cgroups: Cgroups) -> None:
    """A high CPU weight, so that other work on the machine disturbs the clock little."""
    for parent in cgroups.parents.values():
        for file, weight in (("cpu.shares", 1 << 18), ("cpu.weight", 10_000)):
            if (parent / file).exists():
                (parent / file).write_text(str(weight))


def sittings(waiting: Sequence[Cell]) -> Iterator[tuple[Cell, ...]]:
    """Cells of at most one vCPU in pairs, in the order given; the others alone."""
    single = [cell for cell in waiting if cell.cpus <= 1]
    pairs = [tuple(single[i : i + 2]) for i in range(0, len(single), 2)]
    alone = [(cell,) for cell in waiting if cell.cpus > 1]
    mixed = [*pairs, *alone]
    random.Random(1).shuffle(mixed)
    return iter(mixed)


def read_runs(path: Path) -> Iterator[MeasuredRun]:
    """The runs kept in a CSV that `main` wrote; none when there is no file yet."""
    if not path.exists():
        return
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            kinds = {"str": str, "int": int, "float": float}
            yield MeasuredRun(**{f.name: kinds[str(f.type)](row[f.name]) for f in fields(MeasuredRun)})


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--seconds", type=float, default=math.inf, help="begin no run after so long")
    asked = options.parse_args()
    if not DATA.exists():
        sys.exit(f"{DATA} is missing: set EASEL_DATA to the folder with train_sets/")
    cgroups = Cgroups("easel-measure")
    if not cgroups.hard:
        sys.exit("needs control groups that we may write to (root); the stored CSV can be analysed without")

    _prefer(cgroups)
    names = [field.name for field in fields(MeasuredRun)]
    done = [Cell(r.part, r.task, r.steps, r.rows, r.cpus, r.memory_mb) for r in read_runs(asked.out)]
    waiting = [cell for cell in cells() if cell not in done]
    until, left = time.monotonic() + asked.seconds, len(waiting)
    with asked.out.open("a", newline="") as file, ThreadPoolExecutor(len(CORES)) as pool:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        if not done:
            writer.writeheader()
        for sitting in sittings(waiting):
            if time.monotonic() > until:
                break
            cores = [CORES] if sitting[0].cpus > 1 else [(core,) for core in CORES]
            going = [
                pool.submit(measure, cell, cgroups, own) for cell, own in zip(sitting, cores, strict=False)
            ]
            for run in (one.result() for one in going):
                left -= 1
                writer.writerow(asdict(run))
                print(f"{left} left: {run}")
            file.flush()
    cgroups.remove(SystemClock())


if __name__ == "__main__":
    main()
