"""ease.ml figure 11 and the quality of our default: every policy of both papers on every data set, by cost."""

from __future__ import annotations

import numpy as np

from benchmarks.papers import arguments
from benchmarks.papers.compare import Outcome, compare, excess, picture, table_of, write
from benchmarks.papers.worlds import SETTINGS

PAPERS = (
    "mm-gp-ei-prior",
    "mm-gp-ei",
    "gp-ei-round-robin",
    "gp-ei-random",
    "spearmint",
    "round-robin-ei",
    "hybrid",
    "greedy",
    "round-robin",
    "random",
)
DRAWN = ("greedy with hindsight", "easel", "mm-gp-ei-prior", "hybrid", "round-robin", "random")
REPETITIONS = 50
"""As in the paper."""


def rivals_of(quick: bool) -> tuple[str, ...]:
    return ("mm-gp-ei-prior", "round-robin-ei", "hybrid", "round-robin") if quick else PAPERS


def gather(name: str, quick: bool, repetitions: int | None = None) -> dict[str, Outcome]:
    """All policies on one data set."""
    count = repetitions or (4 if quick else REPETITIONS)
    return compare(SETTINGS[name], ("easel", *rivals_of(quick)), count)


def run(quick: bool, repetitions: int | None = None) -> dict[str, float]:
    names = ("DEEPLEARNING", "SYN(0.5,1.0)") if quick else tuple(SETTINGS)
    panels = {name: gather(name, quick, repetitions) for name in names}
    return report(panels, rivals_of(quick), quick)


def report(panels: dict[str, dict[str, Outcome]], rivals: tuple[str, ...], quick: bool) -> dict[str, float]:
    """The figures of merit; unless quick also the page and the picture."""
    figures, lines = {}, []
    for name, found in panels.items():
        ratio, best, error = excess(found, "easel", rivals)
        figures[f"excess over greedy with hindsight on {name}"] = ratio
        lines.append(
            f"| {name} | {len(found['easel'].areas)} | {found['greedy with hindsight'].area:.4f} "
            f"| {best} {found[best].area:.4f} | {found['easel'].area:.4f} | {error:.4f} | {ratio:.2f} |"
        )
    total = float(np.exp(np.mean([np.log(v) for v in figures.values()])))
    figures["excess, geometric mean"] = total
    if quick:
        return figures
    drawn = {name: {p: found[p] for p in DRAWN} for name, found in panels.items()}
    picture(drawn, "easeml_cost_aware", "% of the budget", worst=True)
    head = (
        "| data | repetitions | greedy with hindsight | best paper policy | easel | paired s.e. | excess ratio |\n"
        "|---|---|---|---|---|---|---|"
    )
    body = "\n\n".join(f"## {name}\n\n{table_of(o)}" for name, o in panels.items())
    write(
        "easeml_cost_aware",
        "All policies, by cost (figure 11; the default policy's quality)",
        "python -m benchmarks.papers.easeml_cost_aware",
        "Area under the mean accuracy loss over the budget (10 % of the total cost; Oboe 2 %, 20 tenants). "
        "The excess ratio is (easel − greedy with hindsight)/(best paper policy − greedy with hindsight).\n\n"
        + "\n".join([head, *lines])
        + f"\n\nGeometric mean of the excess ratio: **{total:.2f}**.\n\n{body}\n\n"
        "![loss over cost](easeml_cost_aware.png)",
    )
    return figures


if __name__ == "__main__":
    arguments.main(run, __doc__)
