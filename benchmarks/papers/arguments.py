"""The options that every experiment takes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from benchmarks.papers import worlds

Experiment = Callable[[bool, int | None], dict[str, float]]
"""`(quick, repetitions) -> figures by name`; writes its table and picture unless quick."""


def main(experiment: Experiment, description: str) -> None:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="few repetitions, no files written")
    parser.add_argument("--repetitions", type=int, help="in place of the paper's number")
    chosen = parser.parse_args()
    if not worlds.available():
        sys.exit(f"SKIPPED: no evaluation data at {worlds.DATA}; set EASEL_DATA")
    for name, value in experiment(chosen.quick, chosen.repetitions).items():
        print(f"{name}: {value:.4g}")
