"""What the lines of `benchmarks/quality.py` say: wins and losses, shown minus test, intervals, calibration."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Row = dict[str, str]
TIE = 1e-9
SURE = 1.645
"""Deviations to each side of a 90 % interval."""


def summary(rows: Sequence[Row]) -> str:
    """Returns the figures as Markdown; sets that a system failed on are counted and named."""
    found = {(r["set"], r["seed"], r["budget_s"], r["system"]): r for r in rows}
    text = [_against(found, peer) for peer in sorted({r["system"] for r in rows} - {"easel"})]
    for system in sorted({r["system"] for r in rows}):
        mine = [r for r in rows if r["system"] == system and r["test"]]
        shown = [r for r in mine if r["shown"]]
        if shown:
            gaps = np.array([float(r["shown"]) - float(r["test"]) for r in shown])
            spread = gaps.std() / max(1, len(gaps)) ** 0.5
            text.append(
                f"- {system}: shown minus test {100 * gaps.mean():+.2f} points (± {100 * spread:.2f}) over {len(gaps)}"
            )
        text += _coverage(system, shown)
        text += _calibration(system, mine)
    failed = [f"{r['system']} on {r['set']}" for r in rows if not r["test"]]
    if failed:
        text.append(f"- failed: {', '.join(failed)}")
    return "\n".join(text)


def _against(found: dict[tuple[str, str, str, str], Row], peer: str) -> str:
    gaps = {}
    for (name, seed, budget, system), row in found.items():
        other = found.get((name, seed, budget, peer))
        if system == "easel" and other and row["test"] and other["test"]:
            gaps[f"{name} (seed {seed})"] = float(row["test"]) - float(other["test"])
    values = np.array(list(gaps.values()))
    if not len(values):
        return f"- against {peer}: no set in common yet"
    wins, losses = int((values > TIE).sum()), int((values < -TIE).sum())
    worst = sorted(gaps.items(), key=lambda pair: pair[1])[:5]
    named = ", ".join(f"{name} {100 * gap:+.1f}" for name, gap in worst)
    return (
        f"- against {peer} on {len(values)}: {wins} won, {losses} lost, {len(values) - wins - losses} equal; "
        f"mean {100 * values.mean():+.2f} points; more than 2 points behind on {int((values < -0.02).sum())}; "
        f"worst: {named}"
    )


def _coverage(system: str, rows: Sequence[Row]) -> list[str]:
    """Two readings of the 90 % interval: of the shown score alone, and with the test's own sampling error."""
    told = [r for r in rows if r["shown_error"] and r["test_error"]]
    if not told:
        return []
    gap = np.array([abs(float(r["shown"]) - float(r["test"])) for r in told])
    own = np.array([float(r["shown_error"]) for r in told])
    both = np.hypot(own, [float(r["test_error"]) for r in told])
    return [
        f"- {system}: the shown 90 % interval covers the test score in {100 * np.mean(gap <= SURE * own + TIE):.0f} %, "
        f"with the test's own sampling error added {100 * np.mean(gap <= SURE * both + TIE):.0f} % of {len(told)}"
    ]


def _calibration(system: str, rows: Sequence[Row]) -> list[str]:
    text = []
    for low, high, name in ((0, 350, "< 350"), (350, 3_500, "350 to 3,500"), (3_500, 10**9, "≥ 3,500")):
        errors = [
            float(r["calibration_error"])
            for r in rows
            if r["calibration_error"] and low <= int(r["learned_on"]) < high
        ]
        if errors:
            text.append(
                f"- {system}: calibration error with {name} examples: mean {np.mean(errors):.3f}, "
                f"median {np.median(errors):.3f} over {len(errors)}"
            )
    return text
