"""Why a trial was chosen, for people: one plain sentence or two; the numbers stand beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from easel.declare.counted import counted
from easel.flow.words.candidates import in_words
from easel.flow.words.numbers import chance, duration
from easel.records.decision import Reasons

SHARES = frozenset({"accuracy", "balanced_accuracy", "bit_accuracy"})
"""Metrics that people read as percentages."""
PLAIN = frozenset({"r2", "ssim"})
"""Metrics whose scores are their values."""
NEXT_POINT = "next point"


@dataclass(frozen=True)
class Hope:
    """What a trial was believed to bring: the chance to beat the best, and by how much if it does."""

    probability: float
    gain: float


def hope(reasons: Reasons, ceiling: float = 1.0) -> Hope:
    """Says what was hoped for, from the belief at the moment of the decision and never above the ceiling."""
    best = min(reasons.best_so_far, ceiling)
    if reasons.deviation <= 0:
        gain = max(min(reasons.mean, ceiling) - best, 0.0)
        return Hope(1.0 if gain > 0 else 0.0, gain)
    belief = NormalDist(reasons.mean, reasons.deviation)
    probability = 1.0 - belief.cdf(best)
    if probability < 1e-6 or best >= ceiling:
        return Hope(0.0, 0.0)
    expected = _above(belief, best) - _above(belief, ceiling)
    return Hope(probability, max(expected, 0.0) / probability)


def _above(belief: NormalDist, bar: float) -> float:
    """`E[(f − bar)⁺]`."""
    z = (belief.mean - bar) / belief.stdev
    unit = NormalDist()
    return belief.stdev * (z * unit.cdf(z) + unit.pdf(z))


def clipped(reasons: Reasons) -> tuple[float, float]:
    """The central 90 % of what is believed, as far as a score can go."""
    spread = 1.645 * reasons.deviation
    return min(max(reasons.mean - spread, 0.0), 1.0), min(max(reasons.mean + spread, 0.0), 1.0)


def plain(
    reasons: Reasons,
    candidate: str,
    metric: str,
    *,
    best: float | None,
    past: bool = False,
    until: float | None = None,
    beside: int = 0,
) -> str:
    """`best` is the tenant's best quality in its own metric when the trial was chosen, None before the first.

    `until` is the share of the trial to which the slice comes that was chosen; None for a whole trial. What is hoped
    for is the trial's, its time the slice's. `beside` so many others it is trained as one program, in that time.
    """
    what = "the next point" if candidate == NEXT_POINT else in_words(candidate)
    takes = f"{_subject(until)} {'was expected to take' if past else 'takes'} about {duration(reasons.cost)}"
    if beside:
        takes += f", together with {counted(beside, 'other')} on a GPU"
    done = "" if until is None else " when its trial is done"
    if best is None:
        about = _value(min(max(reasons.mean, 0.0), 1.0), metric) if metric in SHARES | PLAIN else None
        worth = f" of about {about}{done}" if about else ""
        verb = "was tried for" if past else "is tried for"
        return f"{_capital(what)} {verb} a first result{worth}; {takes}."
    found = hope(reasons)
    odds = chance(found.probability)
    odds = odds.replace("has", "had", 1).replace("is nearly", "was nearly") if past else odds
    bar = f"the best {'until then' if past else 'so far'}"
    told = f"{_capital(what)} {odds} to beat {bar} ({_value(best, metric)})"
    if found.probability >= 0.01 and metric in SHARES | PLAIN:
        told += f", by {_difference(found.gain, metric)} if it does"
    if until is not None:
        return f"{told}{',' if ', by ' in told else ''}{done}; {takes}."
    return f"{told}, and {takes.removeprefix('it ')}."


def pack_others(decision: Mapping[str, Any]) -> int:
    """Returns with how many others a trial was to be trained, as its stored decision says."""
    pack = decision.get("pack")
    return 0 if not pack else int(pack["size"]) - 1


def slice_until(decision: Mapping[str, Any]) -> float | None:
    """Returns the share of the trial to which the slice of a stored decision comes; None for a whole trial."""
    part = decision.get("slice")
    return None if part is None else float(part["share"])


def _subject(until: float | None) -> str:
    if until is None:
        return "it"
    return "its last slice" if until >= 1.0 else f"its next slice, up to {100 * until:.0f} % of it,"


def after_whom(name: str | None) -> str:
    """Who goes first; someone of another project is not named."""
    who = name if name is not None else "somebody of another project"
    return f"It runs after {who}, whose next trial promises more for its time."


def _value(quality: float, metric: str) -> str:
    return f"{100 * quality:.1f} %" if metric in SHARES else f"{quality:.3g}"


def _difference(gain: float, metric: str) -> str:
    if metric not in SHARES:
        return f"{gain:.2g}"
    points = 100 * gain
    return f"{points:.1f} points" if points >= 0.05 else "less than 0.1 points"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
