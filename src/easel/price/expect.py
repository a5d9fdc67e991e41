"""c(x): what runs that nobody has made yet will take and cost, for whoever must choose among them. Pure.

Two sources of knowledge, one answer. A profiled command has a runtime model over its arguments (`CostModel`); a
candidate has a first guess and whatever it and its kin took before (`expected_seconds`). Both answer with a
`Prediction`: medians, quantiles and chances, for many runs at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from easel.errors import InvalidInput
from easel.price.book import PriceBook
from easel.price.grid import ResourceShape
from easel.price.memory import MemoryModel
from easel.price.runs import GPUS, RESOLUTION_S, Array, Flags
from easel.price.runtime import Prediction, RuntimeModel

LEVEL_SD, FAMILY_SD, OWN_SD, NOISE_SD = 0.7, 0.5, 0.4, 0.25
"""How far, in log seconds, a machine strays from its guesses, a family from the machine, a kind from its family,
and a run from its kind."""
_CERTAIN = 1e6  # degrees of freedom at which Student's t is the normal distribution


@dataclass(frozen=True)
class Expected:
    """Runs as they will probably go: `time` holds seconds, `cost` `(m,)` the money for the median time, `per_hour`
    `(m,)` its rate, `fits` `(m,)` whether memory suffices, as far as is known.
    """

    time: Prediction
    cost: Array
    per_hour: Array
    fits: Flags


@dataclass(frozen=True)
class CostModel:
    """What is known of one profiled command, at one list of prices."""

    runtime: RuntimeModel
    memory: MemoryModel
    book: PriceBook

    @property
    def names(self) -> tuple[str, ...]:
        """The arguments that a run must give, besides its resources."""
        return tuple(name for name in self.runtime.names if name not in ("cpus", "memory_mb", GPUS))

    def expect(self, arguments: Sequence[Mapping[str, float]], shapes: Sequence[ResourceShape]) -> Expected:
        """Run `i` has `arguments[i]` on `shapes[i]`; there are `m` of both."""
        if len(arguments) != len(shapes):
            raise InvalidInput(f"{len(arguments)} runs on {len(shapes)} shapes: give one shape for each run")
        rows = [
            {**given, "cpus": shape.cpus, "memory_mb": shape.memory_mb, GPUS: shape.gpus}
            for given, shape in zip(arguments, shapes, strict=True)
        ]
        time = self.runtime.predict(rows)
        per_hour = np.array([self._rate(shape) for shape in shapes])
        fits = np.array(
            [
                bool(self.memory.enough(given, np.array([shape.memory_mb]))[0])
                for given, shape in zip(arguments, shapes, strict=True)
            ],
            dtype=bool,
        )
        return Expected(time, self.book.charge(per_hour, time.seconds), per_hour, fits)

    def _rate(self, shape: ResourceShape) -> float:
        kind = self.book.gpu_kind(shape.device)
        return float(self.book.rate(shape.cpus, shape.memory_mb, kind, shape.gpus))


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
