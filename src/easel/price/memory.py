"""How much memory a run needs: peaks that were seen, and failures that say "more than this"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its parts load when they are used: a server that starts pays for none

from easel.price.fit import FittedForm, fit
from easel.price.forms import Growing
from easel.price.runs import (
    GPUS,
    Array,
    Flags,
    ProfiledRun,
    RunOutcome,
    RunTable,
    feature_names,
    log_features,
)

RESOURCES = frozenset({"cpus", "memory_mb", GPUS})


@dataclass(frozen=True)
class TooLittle:
    """A run with these arguments died for want of memory when it had `memory_mb`."""

    arguments: Mapping[str, float]
    memory_mb: float


@dataclass(frozen=True)
class MemoryModel:
    """`peak = base + W·∏ x_i^{β_i}` over the arguments (not the resources), and the failures as a floor.

    A run whose arguments are all at least as large as those of a failed one needs more than that one had.
    """

    fitted: FittedForm | None
    failures: tuple[TooLittle, ...]

    def floor(self, arguments: Mapping[str, float]) -> float:
        """MB that are known to be too little for these arguments; 0 when nothing is known."""
        known = [
            failure.memory_mb
            for failure in self.failures
            if all(arguments.get(name, 0.0) >= value for name, value in failure.arguments.items())
        ]
        return max(known, default=0.0)

    def peak(self, arguments: Mapping[str, float], confidence: float = 0.5) -> float | None:
        """MB that the run stays below with this confidence; nothing when no run reported its memory."""
        if self.fitted is None:
            return None
        X = log_features(self.fitted.form.names, [arguments])
        centre, spread = self.fitted.predict(X)
        total = np.hypot(spread, self.fitted.noise)
        return float(np.exp(centre[0] + scipy.special.stdtrit(self.fitted.freedom, confidence) * total[0]))

    def enough(self, arguments: Mapping[str, float], memory_mb: Array, confidence: float = 0.95) -> Flags:
        """Which of the sizes `memory_mb` `(m,)` will do, as booleans."""
        fits = np.asarray(memory_mb) > self.floor(arguments)
        peak = self.peak(arguments, confidence)
        return np.asarray(fits if peak is None else fits & (np.asarray(memory_mb) >= peak))

    def to_json(self) -> dict[str, Any]:
        fitted = self.fitted and {
            "names": list(self.fitted.form.names),
            "theta": self.fitted.theta.tolist(),
            "cov": self.fitted.cov.tolist(),
            "noise": self.fitted.noise,
            "freedom": self.fitted.freedom,
        }
        failures = [{"arguments": dict(f.arguments), "memory_mb": f.memory_mb} for f in self.failures]
        return {"fitted": fitted, "failures": failures}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> MemoryModel:
        kept = data["fitted"]
        fitted = kept and FittedForm(
            Growing(tuple(kept["names"])),
            np.array(kept["theta"]),
            np.array(kept["cov"]),
            kept["noise"],
            kept["freedom"],
        )
        return cls(fitted or None, tuple(TooLittle(f["arguments"], f["memory_mb"]) for f in data["failures"]))


def learn_memory(runs: Sequence[ProfiledRun]) -> MemoryModel:
    """Learns from the peaks of finished runs and the sizes at which others ran out of memory."""
    failures = tuple(
        TooLittle({n: v for n, v in run.features.items() if n not in RESOURCES}, run.features["memory_mb"])
        for run in runs
        if run.outcome is RunOutcome.OUT_OF_MEMORY
    )
    measured = [
        r for r in runs if r.outcome is RunOutcome.FINISHED and r.peak_mb is not None and r.peak_mb > 0
    ]
    if not measured:
        return MemoryModel(None, failures)
    names = tuple(name for name in feature_names(measured) if name not in RESOURCES)
    peaks = np.array([run.peak_mb for run in measured], dtype=float)
    X = log_features(names, [run.features for run in measured])
    return MemoryModel(fit(Growing(names), RunTable(names, X, np.log(peaks))), failures)
