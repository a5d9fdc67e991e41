"""Fitting a form to a table: maximum a posteriori by nonlinear least squares, with its uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy  # its parts load when they are used: a server that starts pays for none

from easel.price.forms import CoefficientPrior, RuntimeForm
from easel.price.runs import Array, RunTable

NOISE_FLOOR = 0.005
"""No clock repeats a run more closely than half a percent; a perfect fit must not promise perfect
predictions.
"""
START_NOISE = 0.1


@dataclass(frozen=True)
class FittedForm:
    """`theta ~ N(theta, cov)` after the data; `noise` is the standard deviation of `log seconds` around the
    form.

    `freedom` are the degrees of freedom left for the noise, at least 1.
    """

    form: RuntimeForm
    theta: Array
    cov: Array
    noise: float
    freedom: float

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Mean `(m,)` of `log seconds` and the standard deviation `(m,)` that comes from not knowing
        `theta`.
        """
        mean, J = self.form.value(self.theta, X)
        return mean, np.sqrt(np.einsum("ij,jk,ik->i", J, self.cov, J).clip(min=0.0))


def fit(
    form: RuntimeForm, table: RunTable, prior: CoefficientPrior | None = None, near: FittedForm | None = None
) -> FittedForm:
    """The most probable parameters. `near` starts from another fit, for refits with one run less or more.

    Noise and parameters are settled in turns, because the weight of the prior depends on the noise. Robust
    forms use a soft-L1 loss beyond two standard deviations, so that one disturbed run does not bend the whole
    model.
    """
    prior = prior or form.prior
    weight = np.sqrt(np.maximum(prior.precision, 1e-9))
    noise = near.noise if near else START_NOISE
    starts = [near.theta] if near else form.starts(table)
    theta = starts[0]
    for _ in range(1 if near else 3):
        best = None
        for start in starts:
            found = _search(form, table, prior.centre, weight, noise, start)
            if best is None or found[1] < best[1]:
                best = found
        assert best is not None
        theta, starts = best[0], [best[0]]
        value, J = form.value(theta, table.X)
        used = _effective_parameters(J, weight, noise)
        spread = _spread(table.y - value, form.robust)
        freedom = max(len(table) - used, 1.0)
        noise = max(spread * np.sqrt(len(table) / freedom), NOISE_FLOOR)
    value, J = form.value(theta, table.X)
    cov = np.linalg.inv(J.T @ J / noise**2 + np.diag(weight**2))
    return FittedForm(form, theta, np.asarray(cov, dtype=np.float64), float(noise), float(freedom))


def _search(
    form: RuntimeForm, table: RunTable, centre: Array, weight: Array, noise: float, start: Array
) -> tuple[Array, float]:
    def residuals(theta: Array) -> Array:
        return np.concatenate([(form.value(theta, table.X)[0] - table.y) / noise, weight * (theta - centre)])

    def jacobian(theta: Array) -> Array:
        return np.vstack([form.value(theta, table.X)[1] / noise, np.diag(weight)])

    loss: Literal["soft_l1", "linear"] = "soft_l1" if form.robust else "linear"
    found = scipy.optimize.least_squares(
        residuals, start, jac=jacobian, loss=loss, f_scale=2.0, max_nfev=200, x_scale=1.0
    )
    return np.asarray(found.x), float(found.cost)


def _effective_parameters(J: Array, weight: Array, noise: float) -> float:
    """`tr((JᵀJ/σ² + Λ)⁻¹ JᵀJ/σ²)`: parameters that the data settle rather than the prior."""
    information = J.T @ J / noise**2
    return float(np.trace(np.linalg.solve(information + np.diag(weight**2), information)))


def _spread(residuals: Array, robust: bool) -> float:
    """Root mean square; for robust forms far outliers count as three times the typical size."""
    if robust and len(residuals) > 4:
        typical = 1.4826 * float(np.median(np.abs(residuals)))
        if typical > 0:
            residuals = np.clip(residuals, -3.0 * typical, 3.0 * typical)
    return float(np.sqrt(np.mean(residuals**2)))
