"""What a device costs that may be taken away at any moment: work done again, and waits for another. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from easel.optimise.arrays import Array

MOST_RISK = 50.0
"""λτ beyond which a run is hopeless: it saturates there and does not overflow."""


@dataclass(frozen=True)
class Interruptions:
    """A Poisson rate λ `per_hour`. Each loses what was done since the last checkpoint, which comes after `checkpoint_s`
    or at the end of a slice, and costs a wait of `restart_s`."""

    per_hour: float
    restart_s: float = 0.0
    checkpoint_s: float = np.inf

    def stretched(self, seconds: Array) -> Array:
        """Expected elapsed seconds of work that takes `seconds` when left alone: `t · (e^{λτ} − 1)/(λτ) · (1 + λR)`."""
        rate = self.per_hour / 3600.0
        if rate <= 0.0:
            return seconds
        risk = np.clip(np.minimum(seconds, self.checkpoint_s) * rate, 1e-12, MOST_RISK)
        return np.asarray(seconds * (np.expm1(risk) / risk) * (1.0 + rate * self.restart_s))


NEVER = Interruptions(0.0)
