"""ease.ml §6.3.1: nobody knows costs, performance is counted in runs, half of all models may be run."""

from __future__ import annotations

from benchmarks.papers import arguments
from benchmarks.papers.compare import Protocol, compare, picture, table_of, write
from benchmarks.papers.worlds import SETTINGS

POLICIES = ("easel", "hybrid-oblivious", "random-oblivious", "round-robin-oblivious")
NAMES = (
    "DEEPLEARNING",
    "AZURE-like",
    "179CLASSIFIER",
    "SYN(0.01,0.1)",
    "SYN(0.01,1.0)",
    "SYN(0.5,0.1)",
    "SYN(0.5,1.0)",
)


def run(quick: bool, repetitions: int | None = None) -> dict[str, float]:
    names = NAMES[:2] if quick else NAMES
    figures: dict[str, float] = {}
    panels = {}
    for name in names:
        # the synthetic sets and 179CLASSIFIER have hundreds of runs each; the curves settle sooner
        count = repetitions or (4 if quick else 50 if name in NAMES[:2] else 25)
        share = 0.5 if name in NAMES[:2] else 0.2
        panels[name] = compare(SETTINGS[name], POLICIES, count, Protocol(unit_cost=True, share=share))
        figures |= {f"{p} area on {name}": o.area for p, o in panels[name].items()}
    if not quick:
        picture(panels, "easeml_cost_oblivious", "% of the allowed runs", worst=True)
        counts = ", ".join(f"{name} {len(o['easel'].areas)}" for name, o in panels.items())
        body = "\n\n".join(f"## {name}\n\n{table_of(o)}" for name, o in panels.items())
        write(
            "easeml_cost_oblivious",
            "ease.ml without costs (§6.3.1)",
            "python -m benchmarks.papers.easeml_cost_oblivious",
            f"50 % of all models for the real sets, the first 20 % for the large ones (later the curves are "
            f"flat); repetitions: {counts}.\n\n{body}\n\n"
            "![loss over runs](easeml_cost_oblivious.png)",
        )
    return figures


if __name__ == "__main__":
    arguments.main(run, __doc__)
