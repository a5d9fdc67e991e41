"""Measures real training runs under a CPU quota and a memory limit, one at a time, into a CSV.

    python -m benchmarks.provision_measure --out docs/results/provision_runs.csv

Two scripts (`benchmarks/training/`) run over the profiling grid of the paper and over held-out cells with
other epochs, trees, rows and memory. The quota and the limit are those of a control group (version 1,
root needed), as a container would have; the group also has a high CPU weight, so that other people's work on
the machine disturbs the clock little. Runs already in the CSV are not measured again, so an interrupted
measurement goes on.
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
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

HERE = Path(__file__).parent
DATA = (
    Path(os.environ.get("EASEL_DATA", HERE.parent.parent / "shared" / "data"))
    / "train_sets"
    / "mnist_5k.csv.gz"
)
CPU_GROUP, MEMORY_GROUP = (
    Path("/sys/fs/cgroup/cpu/easel_measure"),
    Path("/sys/fs/cgroup/memory/easel_measure"),
)
PERIOD_US = 100_000


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
    throttled_s: float
    peak_mb: float
    load_before: float
    returncode: int


def cells() -> list[Cell]:
    """54 profiling cells a task (3 steps × 2 rows × 3 vCPU × 3 memory), then 32 held-out ones, half of them
    inside the profiled range and half with up to twice the largest number of steps.
    """
    chosen = []
    for task, steps, inside, beyond in (
        ("mlp", (6, 15, 40), (10, 20, 30), (60, 80)),
        ("forest", (30, 80, 200), (50, 120, 160), (280, 400)),
    ):
        grid = itertools.product(steps, (1000, 4000), (0.5, 1.0, 2.0), (512, 1024, 2048))
        chosen += [Cell("profile", task, *cell) for cell in grid]
        rng = random.Random(f"held-out {task}")
        for values in (inside, beyond):
            others = itertools.product(values, (1500, 2500, 3500), (0.5, 1.0, 2.0), (768, 1536, 4096))
            chosen += [Cell("held-out", task, *cell) for cell in rng.sample(list(others), 16)]
    # A random order: a busy quarter of an hour then touches all kinds of cells alike.
    random.Random(0).shuffle(chosen)
    return chosen


def command(cell: Cell) -> list[str]:
    flag = {"mlp": "--epochs", "forest": "--trees"}[cell.task]
    script = HERE / "training" / f"{cell.task}.py"
    return [sys.executable, str(script), flag, str(cell.steps), "--rows", str(cell.rows), "--data", str(DATA)]


def confine(cell: Cell) -> None:
    """Gives the control groups the cell's share."""
    for group in (CPU_GROUP, MEMORY_GROUP):
        group.mkdir(exist_ok=True)
    (CPU_GROUP / "cpu.cfs_period_us").write_text(str(PERIOD_US))
    (CPU_GROUP / "cpu.cfs_quota_us").write_text(str(int(cell.cpus * PERIOD_US)))
    (CPU_GROUP / "cpu.shares").write_text(str(1 << 18))
    (MEMORY_GROUP / "memory.limit_in_bytes").write_text(str(cell.memory_mb << 20))


def throttled() -> float:
    pairs = (line.split() for line in (CPU_GROUP / "cpu.stat").read_text().splitlines())
    return float(dict(pairs)["throttled_time"]) / 1e9


def measure(cell: Cell) -> MeasuredRun:
    confine(cell)
    before, load = throttled(), os.getloadavg()[0]
    threads = str(math.ceil(cell.cpus))
    joined = f'echo $$ > {CPU_GROUP}/tasks && echo $$ > {MEMORY_GROUP}/tasks && exec "$@"'
    start = time.perf_counter()
    process = subprocess.Popen(
        ["/bin/sh", "-c", joined, "sh", *command(cell)],
        env=os.environ | {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    return MeasuredRun(
        **asdict(cell),
        wall_s=round(wall, 4),
        cpu_s=round(used.ru_utime + used.ru_stime, 4),
        throttled_s=round(throttled() - before, 4),
        peak_mb=round(used.ru_maxrss / 1024, 1),
        load_before=round(load, 2),
        returncode=process.returncode,
    )


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
    options.add_argument(
        "--repeats", type=int, default=1, help="how many runs of each cell to have in the end"
    )
    asked = options.parse_args()
    if not DATA.exists():
        sys.exit(f"{DATA} is missing: set EASEL_DATA to the folder with train_sets/")
    if not Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").exists() or os.geteuid() != 0:
        sys.exit("needs root and control groups of version 1; the stored CSV can be analysed without them")

    names = [field.name for field in fields(MeasuredRun)]
    done = [Cell(r.part, r.task, r.steps, r.rows, r.cpus, r.memory_mb) for r in read_runs(asked.out)]
    try:
        with asked.out.open("a", newline="") as file:
            writer = csv.DictWriter(file, names, lineterminator="\n")
            if not done:
                writer.writeheader()
            for number, cell in enumerate(cells(), 1):
                wanted = asked.repeats if cell.part == "held-out" else 1
                for _ in range(wanted - done.count(cell)):
                    run = measure(cell)
                    writer.writerow(asdict(run))
                    file.flush()
                    print(f"{number}/{len(cells())} {run}")
    finally:
        for group in (CPU_GROUP, MEMORY_GROUP):
            if group.exists():
                group.rmdir()


if __name__ == "__main__":
    main()
