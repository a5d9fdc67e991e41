"""Predicts how long runs will take that nobody has made yet, for whoever must choose among them. Pure.

A candidate or a point has a first guess and whatever it and its family took before (`expected_seconds`). The answer is
a `Prediction`, as of the runtime model of a profiled command: medians, quantiles and chances, for many runs at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from easel.price.runs import RESOLUTION_S, Array, Flags
from easel.price.runtime import Prediction

LEVEL_SD, FAMILY_SD, OWN_SD, NOISE_SD = 0.7, 0.5, 0.4, 0.25
"""How far, in log seconds, a machine strays from its guesses, a family from the machine, a kind from its family,
and a run from its kind."""
_CERTAIN = 1e6  # degrees of freedom at which Student's t is the normal distribution


@dataclass(frozen=True)
class WorkKind:
    """What is to be run: its name, its family, and the seconds that it is guessed to take."""

    name: str
    family: str
    guess_s: float


@dataclass(frozen=True)
class Took:
    """A run that has ended: what it was (with the guess made for it then), and how long it took."""

    kind: WorkKind
    seconds: float


def expected_seconds(wanted: Sequence[WorkKind], taken: Sequence[Took] = ()) -> Prediction:
    """How long each of `wanted` `(m,)` will take, given all that was `taken`, of whatever app or study.

    `log(seconds/guess) = level + family + own + noise`, each normal around zero: one slow run of a family makes its
    siblings slower too, a slow machine everything. With no runs the medians are the guesses.
    """
    guesses = np.array([_usable(kind.guess_s) for kind in wanted])
    prior = np.full(len(wanted), LEVEL_SD**2 + FAMILY_SD**2 + OWN_SD**2 + NOISE_SD**2)
    if not taken or not wanted:
        return Prediction(np.log(guesses), np.sqrt(prior), _CERTAIN)
    seen = [one.kind for one in taken]
    y = np.array([np.log(_usable(one.seconds) / _usable(one.kind.guess_s)) for one in taken])
    K = _alike(seen, seen) + NOISE_SD**2 * np.eye(len(seen))
    across = _alike(wanted, seen)
    weights = np.linalg.solve(K, across.T)
    variance = prior - np.einsum("ij,ji->i", across, weights)
    return Prediction(np.log(guesses) + weights.T @ y, np.sqrt(np.maximum(variance, NOISE_SD**2)), _CERTAIN)


class RunTimes:
    """As `expected_seconds`, learned once and asked one kind at a time: no answer depends on others."""

    def __init__(self, taken: Sequence[Took]) -> None:
        seen = [one.kind for one in taken]
        self._families = np.array([kind.family for kind in seen], dtype=np.str_)
        self._names = np.array([kind.name for kind in seen], dtype=np.str_)
        y = np.array([np.log(_usable(one.seconds) / _usable(one.kind.guess_s)) for one in taken])
        K = _alike(seen, seen) + NOISE_SD**2 * np.eye(len(seen)) if seen else np.zeros((0, 0))
        self._weights = np.linalg.solve(K, y) if seen else y

    def median(self, kind: WorkKind) -> float:
        """Seconds that it takes at most in half of the cases."""
        families = self._families == kind.family
        across = LEVEL_SD**2 + FAMILY_SD**2 * families + OWN_SD**2 * ((self._names == kind.name) & families)
        return float(_usable(kind.guess_s) * np.exp(float(across @ self._weights)))


def _alike(these: Sequence[WorkKind], those: Sequence[WorkKind]) -> Array:
    """`(m, n)` prior covariances."""

    def same(key: Callable[[WorkKind], str]) -> Flags:
        here, there = (np.array([key(one) for one in kinds], dtype=np.str_) for kinds in (these, those))
        return np.asarray(here[:, None] == there[None, :])

    families, names = same(lambda kind: kind.family), same(lambda kind: kind.name)
    return np.asarray(LEVEL_SD**2 + FAMILY_SD**2 * families + OWN_SD**2 * (names & families))


def _usable(seconds: float) -> float:
    """Zero, negative and unknown times count as the shortest that the clock can tell."""
    return max(seconds, RESOLUTION_S) if np.isfinite(seconds) else 1.0
