"""MM-GP-EI figures 2 to 5: one device, several devices, and the speed-up on 50 × 50 synthetic tenants."""

from __future__ import annotations

import numpy as np

from benchmarks.papers import arguments
from benchmarks.papers.compare import Outcome, Protocol, compare, picture, write
from benchmarks.papers.worlds import SETTINGS, Setting
from easel.schedule.measure import mean_curve
from easel.schedule.policies import named
from easel.schedule.prior import Prior
from easel.schedule.simulate import World, simulate, tenants
from easel.schedule.state import PoolDevice
from easel.schedule.table import matern_world

GP_EI = ("mm-gp-ei", "gp-ei-round-robin", "gp-ei-random", "easel")
DEVICES = (1, 2, 4, 8)
CUTOFF = 0.01


def _eight_for_history(setting: Setting, total: int) -> Setting:
    """The paper isolates eight users for the prior and serves the rest."""
    return Setting(setting.name, setting.make, users=total - 8, share=0.4)


def synthetic_times(policy: str, repetitions: int, size: int = 50) -> dict[int, float]:
    """Mean time until the mean regret is `CUTOFF`, by number of devices."""
    times: dict[int, list[float]] = {d: [] for d in DEVICES}
    for repetition in range(repetitions):
        rng = np.random.default_rng([50, repetition])
        table, cov = matern_world(rng, size, size)
        prior = Prior(np.full(size, float(table.quality.mean())), cov, 1e-6)
        for count in DEVICES:
            world = World(table, tuple(PoolDevice(f"d{i}") for i in range(count)))
            run = simulate(world, named(policy), tenants(world, prior), table.total_cost, rng)
            times[count].append(run.curve.reaches(CUTOFF))
    return {d: float(np.mean(t)) for d, t in times.items()}


def run(quick: bool, repetitions: int | None = None) -> dict[str, float]:
    count = repetitions or (3 if quick else 25)
    sets = {
        "DEEPLEARNING": _eight_for_history(SETTINGS["DEEPLEARNING"], 22),
        "AZURE-like": _eight_for_history(SETTINGS["AZURE-like"], 17),
    }
    figures: dict[str, float] = {}
    panels: dict[str, dict[str, Outcome]] = {}
    for name, setting in sets.items():
        for devices in (1,) if quick else (1, 4):
            panels[f"{name}, {devices} device(s)"] = compare(setting, GP_EI, count, Protocol(devices=devices))
        if not quick:
            by_count = {
                f"mm-gp-ei, {d} devices": compare(setting, ("mm-gp-ei",), count, Protocol(devices=d))[
                    "mm-gp-ei"
                ]
                for d in DEVICES
            }
            # horizons shrink with devices; put all on the time of one device
            panels[f"{name}, 1 to 8 devices (each on its own time scale)"] = by_count
            for d in DEVICES:
                curve = mean_curve(by_count[f"mm-gp-ei, {d} devices"].curves, 1.0, 4000)
                figures[f"time to 0.03 on {name} with {d} devices"] = curve.reaches(0.03) / d
    figures |= {f"{p} area on {title}": o.area for title, found in panels.items() for p, o in found.items()}
    size = 20 if quick else 50
    for policy in ("mm-gp-ei", "easel"):
        times = synthetic_times(policy, 1 if quick else 5, size)
        figures |= {f"{policy} speed-up with {d} devices": times[1] / times[d] for d in DEVICES}
    if not quick:
        picture(panels, "mmgpei_devices", "% of 40 % of the cost")
        lines = "\n".join(f"| {name} | {value:.4f} |" for name, value in figures.items())
        write(
            "mmgpei_devices",
            "MM-GP-EI: many devices (figures 2 to 5)",
            "python -m benchmarks.papers.mmgpei_devices",
            f"{count} repetitions (5 for the synthetic speed-up to a mean regret of {CUTOFF}), eight tenants for "
            f"the prior, two cheapest models each as warm start.\n\n| figure | value |\n|---|---|\n{lines}\n\n"
            "![loss over time](mmgpei_devices.png)",
        )
    return figures


if __name__ == "__main__":
    arguments.main(run, __doc__)
