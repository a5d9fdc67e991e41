"""ease.ml §6.3 and figure 12: correlation, cost-awareness, size of the training set, hybrid execution, users."""

from __future__ import annotations

from benchmarks.papers import arguments
from benchmarks.papers.compare import Outcome, Protocol, compare, picture, table_of, write
from benchmarks.papers.worlds import SETTINGS


def run(quick: bool, repetitions: int | None = None) -> dict[str, float]:
    many = repetitions or (5 if quick else 50)
    some = repetitions or (2 if quick else 25)
    deep, classifiers = SETTINGS["DEEPLEARNING"], SETTINGS["179CLASSIFIER"]
    panels: dict[str, dict[str, Outcome]] = {
        "cost-awareness (DEEPLEARNING)": compare(deep, ("hybrid", "hybrid-oblivious", "easel"), many)
    }
    sizes: dict[str, Outcome] = {}
    for part in (0.1, 0.5, 1.0):
        found = compare(deep, ("hybrid", "easel"), many, Protocol(history_share=part))
        sizes |= {f"{name}, {part:.0%} of history": found[name] for name in ("hybrid", "easel")}
    panels["size of the history (DEEPLEARNING)"] = sizes
    if not quick:
        panels["hybrid execution (179CLASSIFIER, runs)"] = compare(
            classifiers,
            ("hybrid-oblivious", "greedy-oblivious", "round-robin-oblivious"),
            some,
            Protocol(unit_cost=True, share=0.3),
        )
        panels["50 users (179CLASSIFIER)"] = compare(
            classifiers, ("easel", "hybrid", "random", "round-robin"), max(2, some // 2), Protocol(users=50)
        )
    correlation = {
        name: compare(SETTINGS[name], ("hybrid", "round-robin"), some)
        for name in ("SYN(0.01,0.1)", "SYN(0.5,0.1)")
    }
    figures = {f"{p}; {title}": o.area for title, found in panels.items() for p, o in found.items()}
    figures |= {f"{p}; {title}": o.area for title, found in correlation.items() for p, o in found.items()}
    if not quick:
        picture(panels, "easeml_lesions", "% of the budget")
        body = "\n\n".join(f"## {t}\n\n{table_of(o)}" for t, o in (panels | correlation).items())
        write(
            "easeml_lesions",
            "ease.ml, what each part contributes (§6.3, figure 12)",
            "python -m benchmarks.papers.easeml_lesions",
            f"{many} repetitions on DEEPLEARNING, {some} on the large sets ({max(2, some // 2)} with 50 users).\n\n"
            f"{body}\n\n![lesions](easeml_lesions.png)",
        )
    return figures


if __name__ == "__main__":
    arguments.main(run, __doc__)
