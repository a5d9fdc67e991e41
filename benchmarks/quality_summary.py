"""What the lines of `benchmarks/quality.py` say: wins and losses, shown minus test, intervals, calibration."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from easel.match.metrics import interval

Row = dict[str, str]
SIZES = (
    (0, 350, "< 350", ""),
    (350, 3_500, "350 to 3,500", " (bar: 0.05)"),
    (3_500, 10**9, "≥ 3,500", " (bar: 0.02 from 5,000)"),
)
"""Numbers of examples to learn from, seven tenths of all."""
TIE = 1e-9
BARS = {"autogluon": "0 or more", "flaml": "20 or more of 40"}
"""What wins minus losses should be."""


def summary(rows: Sequence[Row]) -> str:
    """Returns the figures as Markdown, each with its bar; sets that a system failed on are counted and named.

    Where a set was measured again, the last line counts.
    """
    rows = list({(r["set"], r["seed"], r["budget_s"], r["system"]): r for r in rows}.values())
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
                + (" (bar: within 0.5 over 40)" if system == "easel" else "")
            )
        text += _coverage(system, shown)
        text += _calibration(system, mine)
    text += _quickness(found)
    memory = [int(r["memory_mb"]) for r in rows if r["memory_mb"]]
    if memory:
        text.append(f"- memory: at most {max(memory):,} MB (bar: 4,096)")
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
    behind = sorted(name for name, gap in gaps.items() if gap < -0.02)
    bar = BARS.get(peer)
    told = "" if bar is None else f" (bar: {bar})"
    worst = sorted(gaps.items(), key=lambda pair: pair[1])[:5]
    named = ", ".join(f"{name} {100 * gap:+.1f}" for name, gap in worst)
    return (
        f"- against {peer} on {len(values)}: {wins} won, {losses} lost, {len(values) - wins - losses} equal, "
        f"wins minus losses {wins - losses:+d}{told}; mean {100 * values.mean():+.2f} points; "
        f"more than 2 points behind on {len(behind)} (bar: 0){': ' + ', '.join(behind) if behind else ''}; worst: {named}"
    )


def _quickness(found: dict[tuple[str, str, str, str], Row]) -> list[str]:
    """Processor seconds to within 1 % of each system's own final score, and Easel's share of AutoGluon's."""
    within = {key: float(row["within_s"]) for key, row in found.items() if row.get("within_s")}
    text = []
    for system in sorted({key[3] for key in within}):
        seconds = [value for key, value in within.items() if key[3] == system]
        text.append(
            f"- {system}: within 1 % of its final score after {np.median(seconds):.1f} s (median of {len(seconds)})"
        )
    shares = [
        value / max(within[(*key[:3], "autogluon")], 1e-9)
        for key, value in within.items()
        if key[3] == "easel" and (*key[:3], "autogluon") in within
    ]
    if shares:
        text.append(
            f"- time to within 1 %: median {100 * np.median(shares):.0f} % of AutoGluon's over {len(shares)} (bar: 25 %)"
        )
    return text


def _coverage(system: str, rows: Sequence[Row]) -> list[str]:
    """The 90 % interval as it is shown, for a test of as many examples as were validated, and for this test's number."""
    told = [r for r in rows if r["shown_error"]]
    if not told:
        return []
    as_many = [_inside(r, 1.0) for r in told]
    counted = [r for r in told if r.get("validated_on") and r.get("tested_on")]
    own = [_inside(r, float(r["tested_on"]) / float(r["validated_on"])) for r in counted]
    text = f"- {system}: the interval for a test of as many examples covers {100 * np.mean(as_many):.0f} % of {len(told)}"
    if own:
        text += (
            f", the one for the test's own number {100 * np.mean(own):.0f} % of {len(own)} (bar: 85 to 95 %)"
        )
    return [text]


def _inside(row: Row, tested: float) -> bool:
    low, high = interval(row["metric"], float(row["shown"]), float(row["shown_error"]), tested)
    return low - TIE <= float(row["test"]) <= high + TIE


def _calibration(system: str, rows: Sequence[Row]) -> list[str]:
    text = []
    for low, high, name, bar in SIZES:
        errors = [
            float(r["calibration_error"])
            for r in rows
            if r["calibration_error"] and low <= int(r["learned_on"]) < high
        ]
        if errors:
            text.append(
                f"- {system}: calibration error with {name} examples: mean {np.mean(errors):.3f}, "
                f"median {np.median(errors):.3f} over {len(errors)}{bar}"
            )
    return text
