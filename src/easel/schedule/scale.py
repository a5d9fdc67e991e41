"""On which scale beliefs are normal: qualities as they are, or their angles `arcsin √q`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from easel.optimise.arcsine import to_angle, to_quality
from easel.optimise.arrays import Array
from easel.optimise.covariance import estimate, filled
from easel.schedule.prior import Prior

ENOUGH_ROWS = 20
"""Fewer rows cannot tell on which scale they are normal: accuracies usually are as angles."""
INNER = (0.002, 0.998)
"""Qualities at the very ends would decide about the scale alone."""
NEARLY_WHOLE = 0.9
"""A row that lacks more cells than this leaves says little of a scale."""
STEEPEST = 5.0
"""`dw/dq` near 0 and 1, where it has no bound."""


def as_angles(quality: Array) -> bool:
    """Returns whether `arcsin √quality` is the better scale for `quality` `(n, K)`, NaN where a cell is missing.

    Qualities outside [0, 1] have no angle. For few rows it is yes, for many whatever makes them likelier.
    """
    known = quality[np.isfinite(quality)]
    if len(known) and (known.min() < 0.0 or known.max() > 1.0):
        return False
    rows = quality[np.isfinite(quality).mean(1) >= NEARLY_WHOLE]
    if len(rows) < ENOUGH_ROWS:
        return True
    rows = filled(rows)
    inner = np.clip(rows, *INNER)
    jacobian = -float(np.log(2.0 * np.sqrt(inner * (1.0 - inner))).sum())
    return estimate(to_angle(rows)).likelihood + jacobian >= estimate(rows).likelihood


def in_angles(prior: Prior) -> Prior:
    """Returns the same belief over `arcsin √quality`, to first order: `dw/dq = 1/sin 2w`."""
    if prior.arcsine:
        return prior
    mean = to_angle(np.clip(prior.mean, 0.01, 0.99))
    slope = np.minimum(1.0 / np.sin(2.0 * mean), STEEPEST)
    return replace(prior, mean=mean, cov=prior.cov * np.outer(slope, slope), arcsine=True)


def in_qualities(prior: Prior) -> Prior:
    """Returns the same belief over qualities, to first order: `dq/dw = sin 2w`."""
    if not prior.arcsine:
        return prior
    slope = np.maximum(np.sin(2.0 * np.clip(prior.mean, 0.0, np.pi / 2)), 1.0 / STEEPEST)
    return replace(prior, mean=to_quality(prior.mean), cov=prior.cov * np.outer(slope, slope), arcsine=False)
