"""Cold, learned and blended priors, over how much history there is and how it came about.

    python -m benchmarks.prior [--repetitions 10] [--sets DEEPLEARNING …] [--earlier 0 2 5 10 20 1000] [--write]

Excess of the default policy over greedy with hindsight (area under the mean loss over the budget), divided by that of the
cold prior, which knows nothing of the candidates: one level for each tenant, equal candidates. `learned` is history
alone (`optimise/covariance.estimate`), `blend` is the live pool's own (`schedule/learn.learned_prior`). Complete history
has every cell; lived history only those that a pool of the earlier tenants, under the cold prior, chose to run within
the same budget.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from benchmarks.papers import worlds
from benchmarks.papers.compare import write
from benchmarks.papers.worlds import SETTINGS, Setting, split
from easel.optimise.arcsine import to_angle
from easel.optimise.covariance import estimate, filled
from easel.schedule.learn import learned_prior
from easel.schedule.measure import standard_error
from easel.schedule.policies import named
from easel.schedule.prior import Prior, typical, weak
from easel.schedule.scale import as_angles
from easel.schedule.simulate import World, hindsight, simulate, tenants
from easel.schedule.table import ScoreTable

MOST_CANDIDATES = 60
"""Of a set with more, so many are drawn for each repetition."""
SETS = ("DEEPLEARNING", "AZURE-like", "Oboe")


def narrowed(table: ScoreTable, columns: np.ndarray) -> ScoreTable:
    names = tuple(table.candidates[k] for k in columns)
    return ScoreTable(table.tenants, names, table.quality[:, columns], table.cost[:, columns])


def lived(table: ScoreTable, setting: Setting) -> ScoreTable:
    """The same with only the cells that a pool of these tenants ran, under the cold prior and the same budget."""
    if not table.tenants:
        return table
    world = World(table, ceiling=1.0)
    prior = typical(len(table.candidates))
    horizon = setting.share * table.total_cost
    run = simulate(world, named("easel"), tenants(world, prior), horizon, np.random.default_rng(0))
    quality = np.full_like(table.quality, np.nan)
    place = {name: i for i, name in enumerate(table.tenants)}
    for step in run.steps:
        quality[place[step.trial.tenant], step.trial.index] = step.quality
    return ScoreTable(table.tenants, table.candidates, quality, table.cost)


def history_alone(history: ScoreTable) -> Prior:
    """The regularised estimates of history as it is, its gaps filled by what its row and its column are like."""
    K = len(history.candidates)
    rows = history.quality[np.isfinite(history.quality).any(1)]
    if not len(rows):
        return weak(K)
    arcsine = as_angles(rows)
    found = estimate(to_angle(filled(rows)) if arcsine else filled(rows))
    return Prior(found.mean, found.cov, dof=found.dof, arcsine=arcsine, upside=found.upside)


def excesses(setting: Setting, repetition: int, earlier: int, *, complete: bool) -> dict[str, float]:
    """By prior, the area above that of greedy with hindsight."""
    part = split(setting, repetition)
    history, served = part.history, part.tenants
    K = len(served.candidates)
    if K > MOST_CANDIDATES:
        columns = np.sort(np.random.default_rng(repetition).permutation(K)[:MOST_CANDIDATES])
        history, served = narrowed(history, columns), narrowed(served, columns)
        K = MOST_CANDIDATES
    history = history.rows(range(min(earlier, len(history.tenants))))
    if not complete:
        history = lived(history, setting)
    cold = typical(K)
    priors = {
        "cold": dict.fromkeys(served.tenants, cold),
        "learned": dict.fromkeys(served.tenants, history_alone(history)),
        "blend": dict.fromkeys(served.tenants, learned_prior(history.quality, cold, history.cost)),
    }
    world = World(served, ceiling=1.0)
    horizon = setting.share * served.total_cost

    def area(policy: object, given: dict[str, Prior]) -> float:
        members = tenants(world, given)
        return simulate(world, policy, members, horizon, np.random.default_rng(0)).curve.area(horizon)  # type: ignore[arg-type]

    floor = area(hindsight(served), priors["cold"])
    return {name: area(named("easel"), given) - floor for name, given in priors.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETTINGS))
    parser.add_argument("--earlier", type=int, nargs="*", default=[0, 2, 5, 10, 20, 1000])
    parser.add_argument("--write", action="store_true", help="write docs/results/prior.md")
    chosen = parser.parse_args()
    if not worlds.available():
        sys.exit(f"SKIPPED: no evaluation data at {worlds.DATA}; set EASEL_DATA")
    lines = [
        "| data | history | earlier tenants | cold | learned alone | blend | ± | worse than the better one |",
        "|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    for name in chosen.sets:
        setting = SETTINGS[name]
        most = len(split(setting, 0).history.tenants)
        for complete in (True, False):
            for earlier in dict.fromkeys(min(n, most) for n in chosen.earlier):
                if earlier == 0 and not complete:
                    continue
                runs = [excesses(setting, r, earlier, complete=complete) for r in range(chosen.repetitions)]
                mean = {p: float(np.mean([one[p] for one in runs])) for p in runs[0]}
                rival = min(("cold", "learned"), key=lambda p: mean[p])
                error = standard_error([one["blend"] - one[rival] for one in runs]) / mean["cold"]
                over = (mean["blend"] - mean[rival]) / mean["cold"]
                verdict = (
                    "no" if over <= 0 else f"by {over:.2f}" + (", within error" if over <= 2 * error else "")
                )
                cells = " | ".join(f"{mean[p] / mean['cold']:.2f}" for p in ("cold", "learned", "blend"))
                kind = "complete" if complete else "lived"
                lines.append(f"| {name} | {kind} | {earlier} | {cells} | {error:.2f} | {verdict} |")
                print(lines[-1], flush=True)
    if chosen.write:
        write(
            "../prior",
            "A prior from the first minute: cold, learned and blended",
            f"python -m benchmarks.prior --repetitions {chosen.repetitions} --write",
            "Excess over greedy with hindsight relative to the cold prior's; ± is the paired standard error of the blend "
            "against the better of the two. Of Oboe 60 candidates are drawn for each repetition. Lived history holds the "
            "cells that an earlier pool under the cold prior ran; complete history all of them.\n\n"
            + "\n".join(lines),
        )


if __name__ == "__main__":
    main()
