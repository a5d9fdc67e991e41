"""A belief learned from history: normal in quality or in `arcsin √quality`, its upper side as wide as history says."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from easel.optimise.acquire import expected_improvement
from easel.optimise.arcsine import gain_above, quality_moments, to_angle
from easel.optimise.arrays import Array
from easel.optimise.finite import FiniteGP


@dataclass(frozen=True, eq=False)
class LearnedBelief:
    """`process` is over quality, or over its angle where `arcsine`; `mean`, `sd` and what is observed are in quality.

    `upside` `(K,)` multiplies the deviation where a gain is reckoned: candidates fail downwards more often and further
    than they surprise upwards, and a symmetric deviation would hope for as much as it fears.
    """

    process: FiniteGP
    upside: Array
    arcsine: bool

    @property
    def mean(self) -> Array:
        return self._moments()[0]

    @property
    def sd(self) -> Array:
        return self._moments()[1]

    def _moments(self) -> tuple[Array, Array]:
        if self.arcsine:
            return quality_moments(self.process.mean, self.process.sd)
        return self.process.mean, self.process.sd

    def gain(self, best: float, ceiling: float) -> Array:
        """`(K,)` expected gain in quality over `best`, none above the ceiling."""
        m, s = self.process.mean, self.process.sd * self.upside
        if self.arcsine:
            return gain_above(m, s, best, min(ceiling, 1.0))
        gain = expected_improvement(m, s, best)
        if ceiling < np.inf:
            gain = gain - expected_improvement(m, s, max(ceiling, best))
        return np.asarray(gain)

    def column(self, k: int) -> Array:
        """`(K,)` posterior covariances with candidate `k`; of angles to first order, `dq/dw = sin 2w`."""
        if not self.arcsine:
            return self.process.column(k)
        slope = np.sin(2.0 * np.clip(self.process.mean, 0.0, np.pi / 2))
        return np.asarray(self.process.column(k) * slope * slope[k])

    def observed(self, k: int, y: float, extra_noise: float = 0.0) -> LearnedBelief:
        if self.arcsine and np.isfinite(y):
            y = float(to_angle(np.array(y)))
            extra_noise = extra_noise / max(abs(float(np.sin(2.0 * y))), 0.1) ** 2
        return replace(self, process=self.process.observed(k, y, extra_noise))

    def believed(self, k: int) -> LearnedBelief:
        return replace(self, process=self.process.believed(k))
