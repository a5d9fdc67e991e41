"""What profiling runs teach: facts about one run each, and the table that models are fitted to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from easel.errors import InvalidInput

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

GPUS = "gpus"
"""A resource that may be 0, so its logarithm is taken of `gpus + 1`: 0 GPUs are 0, one is log 2."""
RESOLUTION_S = 1e-3
"""A run that the clock saw as 0 s counts as this long: shorter runs cannot be told apart, and log 0 is no
number.
"""


class RunOutcome(StrEnum):
    FINISHED = "finished"
    OUT_OF_MEMORY = "out-of-memory"
    FAILED = "failed"
    STRAGGLER = "straggler"


@dataclass(frozen=True)
class ProfiledRun:
    """One run of a template: its arguments and resources by feature name, and what happened.

    `features` always hold `cpus` and `memory_mb`, the template's arguments, `gpus` where the profile asked for
    any, and `input_mb` where inputs of several sizes were tried. `job` names the run for provenance.
    """

    features: Mapping[str, float]
    outcome: RunOutcome
    seconds: float = 0.0
    peak_mb: float | None = None
    job: str = ""


@dataclass(frozen=True)
class RunTable:
    """`X` `(n, d)` are natural logarithms of the features in the order of `names`; `y` `(n,)` is `log
    seconds`.
    """

    names: tuple[str, ...]
    X: Array
    y: Array

    def __len__(self) -> int:
        return len(self.y)

    def without(self, row: int) -> RunTable:
        keep = np.arange(len(self)) != row
        return RunTable(self.names, self.X[keep], self.y[keep])


def feature_names(runs: Iterable[ProfiledRun]) -> tuple[str, ...]:
    """The features common to all runs; arguments first, then `input_mb`, `gpus`, `cpus`, `memory_mb`."""
    sets = [set(run.features) for run in runs]
    if not sets:
        raise InvalidInput("no profiling run to learn from")
    if any(names != sets[0] for names in sets):
        raise InvalidInput("the runs of one profile must all have the same arguments")
    last = ("input_mb", GPUS, "cpus", "memory_mb")
    return (*sorted(sets[0] - set(last)), *(name for name in last if name in sets[0]))


def log_features(names: Sequence[str], rows: Sequence[Mapping[str, float]]) -> Array:
    """`(n, d)` logarithms; every feature must be a positive number."""
    try:
        X = np.array([[float(row[name]) for name in names] for row in rows]).reshape(len(rows), len(names))
    except KeyError as error:
        raise InvalidInput(f"{error.args[0]} is missing: the profile knows {', '.join(names)}") from None
    return to_logarithms(names, X)


def to_logarithms(names: Sequence[str], X: Array) -> Array:
    """`(n, d)` of the features `names`, in their own units, as logarithms."""
    counted = X + np.array([name == GPUS for name in names], dtype=float)
    if not (np.isfinite(counted).all() and (counted > 0).all() and (X >= 0).all()):
        raise InvalidInput(
            "arguments and resources must be positive numbers: runtime is modelled in logarithms"
        )
    return np.asarray(np.log(counted))


def from_logarithms(names: Sequence[str], X: Array) -> Array:
    """The inverse of `to_logarithms`."""
    return np.asarray(np.exp(X) - np.array([name == GPUS for name in names], dtype=float))


def table(runs: Sequence[ProfiledRun]) -> RunTable:
    """The finished runs as logarithms. A run of 0 s counts as `RESOLUTION_S`; failures are left to the
    memory floor.
    """
    finished = [run for run in runs if run.outcome is RunOutcome.FINISHED]
    if not finished:
        counts = {outcome: sum(run.outcome is outcome for run in runs) for outcome in RunOutcome}
        told = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
        look = next((f" (`easel jobs logs {run.job}`)" for run in runs if run.job), "")
        raise InvalidInput(
            f"no profiling run finished ({told or 'none ran'}): read their logs{look}, mend the command"
        )
    names = feature_names(finished)
    seconds = np.array([run.seconds for run in finished])
    if not (np.isfinite(seconds).all() and (seconds >= 0).all()):
        raise InvalidInput("runtimes must be finite and not negative")
    X = log_features(names, [run.features for run in finished])
    return RunTable(names, X, np.log(np.maximum(seconds, RESOLUTION_S)))
