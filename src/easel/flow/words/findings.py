"""What was found about a model, in plain sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from easel.declare.counted import counted

FINDINGS = "findings.json"
"""The file of an output set that holds them."""
CHECKS = "checks.json"
MATTERS = 2.0
"""A column matters where its drop is so many of its own deviations."""
MOST_NAMED = 5
CLEAR = 0.8
"""A rank correlation from which on the direction of a column is told."""


def findings_told(found: Mapping[str, Any]) -> list[str]:
    """One sentence for each question: how it was judged, what matters, where it fails, what would help, how sure."""
    return [
        f"Judged by {found['judged_by']} on {counted(found['held_out'], 'example')} that it had not seen: "
        f"{found['metric']} {found['score']:.3f}.",
        *_what_matters(found),
        *_what_moves_it(found),
        *_where_it_fails(found),
        *_what_would_help(found),
        *_how_sure(found),
    ]


def _what_matters(found: Mapping[str, Any]) -> list[str]:
    columns = found["importance"]
    if not columns:
        return []
    telling = [one for one in columns if one["drop"] > MATTERS * max(one["deviation"], 1e-9)]
    named = ", ".join(f"{one['column']} ({one['drop']:.3f} less without it)" for one in telling[:MOST_NAMED])
    rest = len(columns) - len(telling)
    parts = [f"What matters: {named or 'no single column'}."]
    if rest:
        parts.append(
            f"{rest} of {counted(len(columns), 'column')} could be left out one at a time without a loss that shows."
        )
    if found["columns_not_looked_at"]:
        parts.append(f"Not looked at, as time was over: {counted(found['columns_not_looked_at'], 'column')}.")
    return [" ".join(parts)]


def _what_moves_it(found: Mapping[str, Any]) -> list[str]:
    """Findings of earlier releases say nothing about it."""
    columns = [one for one in found.get("contributions") or [] if one["mean"] > 0]
    if columns:
        named = ", ".join(
            f"{one['column']} ({one['mean']:.3g}{direction(one)})" for one in columns[:MOST_NAMED]
        )
        return [f"What moves its answers (exact Shapley values, {found['contributions_of']}): {named}."]
    why = found.get("no_contributions")
    return [f"What moves single answers: {why}."] if why else []


def direction(one: Mapping[str, Any]) -> str:
    """`, larger adds` where a column's larger numbers nearly always add."""
    if one["direction"] is None or abs(one["direction"]) < CLEAR:
        return ""
    return ", larger adds" if one["direction"] > 0 else ", larger takes away"


def _where_it_fails(found: Mapping[str, Any]) -> list[str]:
    def size(value: float) -> str:
        return (
            f"{value:.0%} wrong"
            if found.get("classes") or "wrong" in found["error_kind"]
            else f"error {value:.3g}"
        )

    worst = [
        f"{one['where']} ({size(one['error'])} of {one['examples']}, {size(one['elsewhere'])} elsewhere)"
        for one in found["weak_groups"][:MOST_NAMED]
    ]
    if not worst:
        return ["Where it fails: no group of examples stands out."]
    return [f"Where it fails: {'; '.join(worst)}."]


def _what_would_help(found: Mapping[str, Any]) -> list[str]:
    told = found["twice_the_examples"]
    if told is None:
        return ["What would help: too few examples to say whether more would."]
    unit = "points" if "wrong" in found["error_kind"] else "points of R²"
    gain, low, high = (100 * told[key] for key in ("gain", "low", "high"))
    if high < 0.5:
        return [f"What would help: twice the examples would hardly (at most {max(high, 0):.1f} {unit} more)."]
    return [
        f"What would help: with twice the examples about {gain:.1f} {unit} more (90 %: {low:.1f} to {high:.1f})."
    ]


def _how_sure(found: Mapping[str, Any]) -> list[str]:
    told = []
    if found.get("calibration_error") is not None:
        told.append(f"How sure: its probabilities are off by {found['calibration_error']:.3f} on average.")
    if found.get("coverage") is not None:
        told.append(
            f"How sure: its intervals hold {found['coverage']:.0%} of the truths, where "
            f"{found['meant_to_cover']:.0%} are meant."
        )
    return told
