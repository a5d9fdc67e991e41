"""A small Gaussian process on what a parametric form leaves over, for shapes that no formula foresaw.

It lives on unit-scaled log features and fades to nothing away from the profiled cells, so that far
predictions are the form's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from easel.optimise.gp import GP
from easel.optimise.gp import fit as fit_gp
from easel.optimise.kernels import Constant, Matern52
from easel.price.fit import FittedForm
from easel.price.runs import Array, RunTable


@dataclass(frozen=True)
class ResidualModel:
    """`log t − form ~ GP`; inputs are `(X − low)/width` `(n, d)`, with width 1 for features that never
    varied.
    """

    gp: GP
    low: Array
    width: Array

    @property
    def noise(self) -> float:
        return float(np.sqrt(self.gp.noise) * self.gp.scale)

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Mean and standard deviation `(m,)` of the correction at log features `X` `(m, d)`."""
        mean, sd = self.gp.posterior((X - self.low) / self.width)
        return np.asarray(mean), np.asarray(sd)

    def on(self, X: Array, left_over: Array) -> ResidualModel:
        """The same hyperparameters on other data; used for leave-one-out."""
        scaled = (X - self.low) / self.width
        gp = GP.on(self.gp.kernel, scaled, left_over, self.gp.noise, offset=0.0, scale=self.gp.scale)
        return ResidualModel(gp, self.low, self.width)

    def to_json(self) -> dict[str, Any]:
        return {
            "theta": self.gp.kernel.theta.tolist(),
            "noise": self.gp.noise,
            "scale": self.gp.scale,
            "X": np.asarray(self.gp.X).tolist(),
            "y": np.asarray(self.gp.y).tolist(),
            "low": self.low.tolist(),
            "width": self.width.tolist(),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ResidualModel:
        X, y = np.array(data["X"]), np.array(data["y"])
        kernel = _kernel(X.shape[1]).at(np.array(data["theta"]))
        gp = GP.on(kernel, X, y, data["noise"], offset=0.0, scale=data["scale"])
        return cls(gp, np.array(data["low"]), np.array(data["width"]))


def _kernel(d: int) -> Any:
    return Constant() * Matern52.ard(d)


def fit_residual(fitted: FittedForm, table: RunTable, errors: Array) -> ResidualModel:
    """A GP on the residuals of `fitted` over its own table.

    Its hyperparameters come from the left-out `errors` `(n,)` by marginal likelihood: the residuals
    themselves are too small, by as much as the form's parameters took up.
    """
    left_over = table.y - fitted.form.value(fitted.theta, table.X)[0]
    low, high = table.X.min(0), table.X.max(0)
    width = np.where(high > low, high - low, 1.0)
    gp = fit_gp(_kernel(table.X.shape[1]), (table.X - low) / width, errors)
    return ResidualModel(gp, low, width).on(table.X, left_over)
