"""How much memory a trial on a large table takes, beside what is asked for it.

    python -m benchmarks.tables                                         # a small form, seconds
    python -m benchmarks.tables --rows 1000000 --columns 10             # a million rows
    python -m benchmarks.tables --rows 2000 --columns 5000              # five thousand columns

A table of random numbers, half of it words, is written as an app's examples are kept; one trial learns from it in a
process of its own, as a device would run it. Bar: the peak is within what the pool asks for.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from easel.flow.apps.beliefs import Costs
from easel.flow.apps.trial import learn
from easel.match.candidate import Candidate
from easel.match.stored import StoredPair, write_lines
from easel.match.summary import DataSummary

AT_ONCE = 10_000


@dataclass(frozen=True)
class Place:
    """What a trial sees of the device it runs on."""

    arguments: dict[str, Any]
    input: Path
    output: Path
    checkpoint: Path

    def asked_to_give_way(self) -> bool:
        return False


def program_of(columns: int) -> str:
    kinds = ", ".join(f"c{k} :: {'Category' if k % 2 else 'Number?'}" for k in range(columns))
    return f"{{input: {{[{kinds}], []}}, output: {{[Category[no, yes]], []}}}}"


def write(folder: Path, rows: int, columns: int) -> None:
    """Writes the examples a few thousand at a time: this process must not need the memory it measures."""
    rng = np.random.default_rng(0)
    with (folder / "shard.jsonl").open("wb") as file:
        for start in range(0, rows, AT_ONCE):
            numbers = rng.normal(size=(min(AT_ONCE, rows - start), columns)).round(4)
            pairs = []
            for k, row in enumerate(numbers, start=start):
                told = {f"c{j}": f"w{int(v * 10) % 40}" if j % 2 else float(v) for j, v in enumerate(row)}
                pairs.append(StoredPair(f"{k:032x}", k % 5, told, "yes" if row[0] > 0 else "no"))
            file.writelines(write_lines(pairs))


def trial(folder: Path, columns: int, family: str) -> None:
    arguments = {
        "program": program_of(columns),
        "candidate": Candidate(family).to_json(),
        "seed": 0,
        "budget_s": 3_600.0,
    }
    with tempfile.TemporaryDirectory() as checkpoint:
        found = learn(Place(arguments, folder, folder / "out", Path(checkpoint)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{peak:.0f} {found['quality']:.3f}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--families", default="logistic_regression,lightgbm")
    parser.add_argument("--inside", help="used by itself: the folder of the examples")
    wanted = parser.parse_args()
    if wanted.inside:
        trial(Path(wanted.inside), wanted.columns, wanted.families)
        return 0
    summary = DataSummary(wanted.rows, wanted.columns, classes=2)
    worst = 0
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), wanted.rows, wanted.columns)
        for family in wanted.families.split(","):
            asked = Costs([]).needs("app", [Candidate(family)], summary)[0].memory_mb
            began = time.monotonic()
            command = [sys.executable, "-m", "benchmarks.tables", "--inside", folder, "--families", family]
            ended = subprocess.run(
                [*command, "--columns", str(wanted.columns)], capture_output=True, text=True, check=False
            )
            if ended.returncode:
                print(f"{family}: failed: {ended.stderr[-300:]}")
                worst = 1
                continue
            peak, quality = ended.stdout.split()[-2:]
            worst |= float(peak) > asked
            print(
                f"{wanted.rows:,} rows × {wanted.columns:,} columns, {family}: peak {peak} MB of {asked} asked for, "
                f"{time.monotonic() - began:.0f} s, accuracy {quality}",
                flush=True,
            )
    return worst


if __name__ == "__main__":
    raise SystemExit(main())
