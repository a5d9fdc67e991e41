"""Beliefs of tenants that are known to be alike: one process over all of them, one view for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from easel.optimise.arrays import Array
from easel.optimise.finite import FiniteGP
from easel.optimise.joint import JointGP
from easel.schedule.prior import Prior


@dataclass(frozen=True, eq=False)
class RelatedBelief:
    """What the joint process says of tenant number `row`; a `Belief` that a relative's results move too."""

    process: JointGP
    row: int

    @property
    def mean(self) -> Array:
        return np.asarray(self.process.mean[self.row])

    @property
    def sd(self) -> Array:
        return np.asarray(np.sqrt(self.process.var[self.row]))

    def column(self, k: int) -> Array:
        return np.asarray(self.process.columns(self.row, k)[self.row])

    def observed(self, k: int, y: float, extra_noise: float = 0.0) -> RelatedBelief:
        return replace(self, process=self.process.observed(self.row, k, y, extra_noise))

    def believed(self, k: int) -> FiniteGP:
        mean, cov = self.process.within(self.row)
        return FiniteGP.prior(np.asarray(mean), np.asarray(cov), self.process.noise).believed(k)

    def told(self, of: RelatedBelief) -> RelatedBelief:
        """The same tenant after a relative's result."""
        return replace(self, process=of.process)


def related_beliefs(prior: Prior, similarity: Array, capacity: int = 64) -> Sequence[RelatedBelief]:
    """One belief per tenant under a common `prior` and `similarity` `(N, N)`, a covariance with unit diagonal."""
    N = len(similarity)
    process = JointGP.prior(np.tile(prior.mean, (N, 1)), similarity, prior.cov, prior.noise, capacity)
    return [RelatedBelief(process, i) for i in range(N)]
