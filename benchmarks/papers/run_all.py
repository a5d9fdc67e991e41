"""All experiments of the multi-tenant papers, one after another: `python -m benchmarks.papers.run_all [--quick]`."""

from __future__ import annotations

import time

from benchmarks.papers import (
    arguments,
    easeml_cost_aware,
    easeml_cost_oblivious,
    easeml_end_to_end,
    easeml_lesions,
    mmgpei_devices,
)

EXPERIMENTS = {
    "end to end": easeml_end_to_end.run,
    "devices": mmgpei_devices.run,
    "lesions": easeml_lesions.run,
    "cost-aware": easeml_cost_aware.run,
    "cost-oblivious": easeml_cost_oblivious.run,
}


def run(quick: bool, repetitions: int | None = None) -> dict[str, float]:
    figures: dict[str, float] = {}
    for name, experiment in EXPERIMENTS.items():
        began = time.perf_counter()
        figures |= {f"{name}: {key}": value for key, value in experiment(quick, repetitions).items()}
        print(f"{name} took {time.perf_counter() - began:.0f} s", flush=True)
    return figures


if __name__ == "__main__":
    arguments.main(run, __doc__)
