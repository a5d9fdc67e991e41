"""Qualities in any metric as scores from 0 to 1: what policies and beliefs compare."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


def as_scores(metric: str, qualities: Mapping[str, float]) -> dict[str, float]:
    """Qualities of one app in any metric → [0, 1], 1 for what cannot be bettered: what policies compare.

    Errors have no scale of their own: half a point is the app's median error, so that they are comparable
    within the app, which is all that its belief needs.
    """
    if is_relative(metric):
        typical = max(float(np.median([-q for q in qualities.values()])), 1e-12) if qualities else 1.0
        return {name: 1.0 / (1.0 + max(-q, 0.0) / typical) for name, q in qualities.items()}
    return {name: as_score(metric, q) for name, q in qualities.items()}


def is_relative(metric: str) -> bool:
    """Whether a score depends on the app's other results too."""
    return metric.startswith("negative_") and metric != "negative_log_loss"


def as_score(metric: str, quality: float) -> float:
    """The score of one quality in a metric that has a scale of its own."""
    if metric == "psnr":
        return min(max(quality / 50.0, 0.0), 1.0)
    if metric == "negative_log_loss":
        return float(np.exp(min(quality, 0.0)))
    return min(max(quality, 0.0), 1.0)
