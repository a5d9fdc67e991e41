"""The runtime model: several shapes fitted to a profile, the best by leave-one-out kept, with honest
intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy  # its parts load when they are used: a server that starts pays for none

from easel.errors import InvalidInput
from easel.price.fit import FittedForm, fit
from easel.price.forms import (
    CANDIDATES,
    FORMS,
    Amdahl,
    CoefficientPrior,
    Interactions,
    LogLinear,
    RuntimeForm,
)
from easel.price.residual import ResidualModel, fit_residual
from easel.price.runs import Array, ProfiledRun, RunTable, from_logarithms, log_features, table

FEWEST_RUNS = 4
"""Below this nothing can be left out and judged; an earlier profile of the same code lifts the limit to one
run.
"""


@dataclass(frozen=True)
class Prediction:
    """`log seconds` is Student-t with `freedom` degrees of freedom around `centre` `(m,)`, scaled by
    `spread` `(m,)`.
    """

    centre: Array
    spread: Array
    freedom: float

    @property
    def seconds(self) -> Array:
        """The median, `(m,)`."""
        return np.asarray(np.exp(self.centre))

    def quantile(self, level: float) -> Array:
        """Seconds within which the run ends with probability `level`, `(m,)`."""
        if not 0.0 < level < 1.0:
            raise InvalidInput(f"a confidence of {level}: give a number between 0 and 1, such as 0.95")
        return np.asarray(np.exp(self.centre + scipy.special.stdtrit(self.freedom, level) * self.spread))

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """The central interval that holds the runtime with probability `level`."""
        return self.quantile((1.0 - level) / 2.0), self.quantile((1.0 + level) / 2.0)

    def chance_within(self, seconds: float) -> Array:
        """`P(runtime ≤ seconds)`, `(m,)`."""
        if seconds <= 0.0:
            return np.zeros(len(self.centre))
        return np.asarray(scipy.special.stdtr(self.freedom, (np.log(seconds) - self.centre) / self.spread))


@dataclass(frozen=True)
class RuntimeModel:
    """A fitted form, perhaps with a GP on its residuals. `left_out` are the leave-one-out errors (root mean
    square of `log seconds`) of every candidate, `widening` stretches the intervals so that left-out runs fall
    inside as often as promised; `seen` are the profiled ranges of the features.
    """

    chosen: str
    fitted: FittedForm
    residual: ResidualModel | None
    widening: float
    left_out: Mapping[str, float]
    seen: Mapping[str, tuple[float, float]]
    runs: int
    jobs: tuple[str, ...] = field(default=())

    @property
    def names(self) -> tuple[str, ...]:
        return self.fitted.form.names

    def predict(self, rows: Sequence[Mapping[str, float]]) -> Prediction:
        """Predicts for rows of features by name; all of the profile's features are needed."""
        return self.predict_log(log_features(self.names, rows))

    def predict_log(self, X: Array) -> Prediction:
        """Predicts for log features `X` `(m, d)` in the order of `names`."""
        centre, spread, noise = _predict(self.fitted, self.residual, X)
        total = np.sqrt(spread**2 + noise**2) * self.widening
        return Prediction(centre, total, self.fitted.freedom)

    def beyond(self, row: Mapping[str, float]) -> tuple[str, ...]:
        """The features of `row` outside what was profiled: there the form extrapolates."""
        within = 1.0 + 1e-9
        seen = self.seen.items()
        return tuple(
            n for n, (low, high) in seen if not low / within - 1e-9 <= row[n] <= high * within + 1e-9
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "chosen": self.chosen,
            "form": self.fitted.form.kind,
            "names": list(self.names),
            "parameters": list(self.fitted.form.parameters),
            "theta": self.fitted.theta.tolist(),
            "cov": self.fitted.cov.tolist(),
            "noise": self.fitted.noise,
            "freedom": self.fitted.freedom,
            "residual": self.residual.to_json() if self.residual else None,
            "widening": self.widening,
            "left_out": dict(self.left_out),
            "seen": {name: list(span) for name, span in self.seen.items()},
            "runs": self.runs,
            "jobs": list(self.jobs),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RuntimeModel:
        form = FORMS[data["form"]](tuple(data["names"]))
        theta, cov = np.array(data["theta"]), np.array(data["cov"])
        return cls(
            data["chosen"],
            FittedForm(form, theta, cov, data["noise"], data["freedom"]),
            ResidualModel.from_json(data["residual"]) if data["residual"] else None,
            data["widening"],
            data["left_out"],
            {name: (span[0], span[1]) for name, span in data["seen"].items()},
            data["runs"],
            tuple(data["jobs"]),
        )


def _predict(fitted: FittedForm, residual: ResidualModel | None, X: Array) -> tuple[Array, Array, float]:
    """Centre, spread of not knowing, and noise."""
    centre, spread = fitted.predict(X)
    if residual is None:
        return centre, spread, fitted.noise
    correction, doubt = residual.predict(X)
    return centre + correction, np.hypot(spread, doubt), residual.noise


@dataclass(frozen=True)
class _Judged:
    """A candidate with its leave-one-out residuals `(n,)`, plain and in standard deviations."""

    name: str
    fitted: FittedForm
    residual: ResidualModel | None
    errors: Array
    standardised: Array

    @property
    def loss(self) -> float:
        return float(np.sqrt(np.mean(self.errors**2)))


def learn(runs: Sequence[ProfiledRun], earlier: RuntimeModel | None = None) -> RuntimeModel:
    """The best model of a profile. Candidates: every form, the one after Amdahl also with `earlier`'s
    posterior as its prior, and the best of them with a GP on its residuals. The smallest leave-one-out error
    wins; interactions and the GP, which are at their worst beyond the profiled cells, must win clearly.
    """
    data = table(runs)
    if earlier is not None and earlier.names != data.names:
        earlier = None
    if len(data) < (1 if earlier else FEWEST_RUNS):
        raise InvalidInput(
            f"{len(data)} finished runs are too few to learn from: at least {FEWEST_RUNS} are needed"
        )
    priors: list[tuple[str, RuntimeForm, CoefficientPrior | None]] = [
        (f.kind, f(data.names), None) for f in CANDIDATES
    ]
    if earlier is not None and isinstance(earlier.fitted.form, Amdahl):
        form = earlier.fitted.form
        priors.append(("amdahl, transferred", form, transferred(earlier.fitted)))
    if len(data) < FEWEST_RUNS:
        priors = [one for one in priors if one[2] is not None] or [("amdahl", Amdahl(data.names), None)]
    judged = [_judge(name, form, prior, data) for name, form, prior in priors]
    best = min((one for one in judged if one.name != Interactions.kind), key=lambda one: one.loss)
    crossed = [one for one in judged if one.name == Interactions.kind]
    best = next((one for one in crossed if _clearly_better(one, best)), best)
    if len(data) > 2 * FEWEST_RUNS:
        prior = next(prior for name, _, prior in priors if name == best.name)
        corrected = _judge_with_residual(best, data, prior)
        judged.append(corrected)
        best = corrected if _clearly_better(corrected, best) else best
    finished = [run for run in runs if run.job and run.outcome == "finished"]
    return RuntimeModel(
        chosen=best.name,
        fitted=best.fitted,
        residual=best.residual,
        widening=_widening(best.standardised),
        left_out={one.name: one.loss for one in judged},
        seen=_ranges(data),
        runs=len(data),
        jobs=tuple(run.job for run in finished),
    )


def learn_log_linear(runs: Sequence[ProfiledRun]) -> RuntimeModel:
    """The paper's model alone, for comparison."""
    data = table(runs)
    judged = _judge("log-linear", LogLinear(data.names), None, data)
    return RuntimeModel(
        "log-linear", judged.fitted, None, 1.0, {"log-linear": judged.loss}, _ranges(data), len(data)
    )


def _ranges(data: RunTable) -> dict[str, tuple[float, float]]:
    low, high = (from_logarithms(data.names, end[None])[0] for end in (data.X.min(0), data.X.max(0)))
    return {name: (float(low[j]), float(high[j])) for j, name in enumerate(data.names)}


def transferred(earlier: FittedForm) -> CoefficientPrior:
    """A prior from an earlier profile of the same code: its posterior, loosened.

    How work grows with an argument and how it spreads over processors belongs to the code and changes little
    (a tenth); how long one unit takes belongs to the data and the machine, and may differ by a factor of two.
    """
    own = earlier.form.prior
    slack = np.array([0.7 if name.startswith("log_") else 0.1 for name in earlier.form.parameters])
    precision = 1.0 / (np.diag(earlier.cov) + slack**2)
    return CoefficientPrior(earlier.theta, np.maximum(precision, own.precision))


def _judge(name: str, form: RuntimeForm, prior: CoefficientPrior | None, data: RunTable) -> _Judged:
    fitted = fit(form, data, prior)
    if len(data) < 2:
        return _Judged(name, fitted, None, np.zeros(1), np.ones(1))
    errors, standardised = np.empty(len(data)), np.empty(len(data))
    for i in range(len(data)):
        without = fit(form, data.without(i), prior, near=fitted)
        centre, spread, noise = _predict(without, None, data.X[i : i + 1])
        errors[i] = data.y[i] - centre[0]
        standardised[i] = errors[i] / np.hypot(spread[0], noise)
    return _Judged(name, fitted, None, errors, standardised)


def _judge_with_residual(base: _Judged, data: RunTable, prior: CoefficientPrior | None) -> _Judged:
    """The GP's hyperparameters are fitted once; everything else is refitted for each left-out run."""
    residual = fit_residual(base.fitted, data, base.errors)
    errors, standardised = np.empty(len(data)), np.empty(len(data))
    for i in range(len(data)):
        rest = data.without(i)
        without = fit(base.fitted.form, rest, prior, near=base.fitted)
        left_over = rest.y - without.form.value(without.theta, rest.X)[0]
        around = residual.on(rest.X, left_over)
        centre, spread, noise = _predict(without, around, data.X[i : i + 1])
        errors[i] = data.y[i] - centre[0]
        standardised[i] = errors[i] / np.hypot(spread[0], noise)
    return _Judged(f"{base.name} + gp", base.fitted, residual, errors, standardised)


def _clearly_better(flexible: _Judged, plain: _Judged) -> bool:
    """Whether it is better by a fifth of the error, and by two standard errors of the paired differences.

    A flexible model always looks a little better on the cells it was judged on, and is used far from them.
    """
    gains = plain.errors**2 - flexible.errors**2
    sure = gains.mean() > 2.0 * gains.std(ddof=1) / np.sqrt(len(gains))
    return bool(sure and flexible.loss < 0.8 * plain.loss)


def _widening(standardised: Array) -> float:
    """Returns the factor that gives left-out runs unit spread; never narrower than the fit itself."""
    return float(np.clip(np.sqrt(np.mean(standardised**2)), 1.0, 3.0))
