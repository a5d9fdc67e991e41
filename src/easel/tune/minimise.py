"""Run a study inside one Python process: `easel.minimise(f, space, "loss")`. No server needed."""

from __future__ import annotations

import inspect
import logging
import math
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from easel.clock import Clock, SystemClock
from easel.declare.dimensions import Dimension
from easel.declare.goal import COST, TIME, BudgetKind, Goal, parse_goal
from easel.declare.space import Space
from easel.errors import InvalidInput
from easel.records.study import Finished, Observation, PointOutcome, Recommendation, Suggestion
from easel.tune.curves import hopeless
from easel.tune.exchange.csv import append_csv, read_csv
from easel.tune.strategy import Strategy
from easel.tune.tuner import Tuner

_FIRST = 3
log = logging.getLogger("easel.tune")

Measured = float | Mapping[str, float]
Objective = Callable[[dict[str, Any]], Measured] | Callable[[dict[str, Any], "RunningTrial"], Measured]


class Stopped(Exception):
    """Raised inside the objective by `Running.report` when the trial should end now."""


@dataclass
class RunningTrial:
    """Handed to an objective with two parameters, so that it can report a curve and be stopped early."""

    suggestion: Suggestion
    goal: Goal
    others: list[dict[int, float]]
    elapsed: Callable[[], float]
    price: float | None
    curve: dict[int, float] = field(default_factory=dict)
    last: dict[str, float] = field(default_factory=dict)

    def report(self, step: int, **values: float) -> None:
        """Record measurements after `step`; raises `Stopped` when the curve is hopeless or the budget is over."""
        self.last |= {name: float(value) for name, value in values.items()}
        if self.goal.quantity in values:
            self.curve[step] = float(values[self.goal.quantity])
        if self._spent() >= (math.inf if self.suggestion.limit is None else self.suggestion.limit):
            raise Stopped("the budget is spent")
        if hopeless(self.curve, self.others, larger_is_better=self.goal.sign > 0):
            raise Stopped("its curve is below the median of the others")

    def _spent(self) -> float:
        kind = self.goal.budget.kind
        if kind is BudgetKind.COUNT:
            return 0.0
        if kind is BudgetKind.TIME or self.price is None:
            return self.elapsed() if kind is BudgetKind.TIME else 0.0
        return self.elapsed() * self.price / 3600.0


@dataclass(frozen=True)
class LocalStudy:
    """What `minimise` returns: the recommendation and the whole history."""

    tuner: Tuner
    reason: str

    @property
    def best(self) -> Recommendation | None:
        return self.tuner.recommend()

    @property
    def observations(self) -> tuple[Observation, ...]:
        return tuple(self.tuner.observations)

    @property
    def spent(self) -> float:
        return self.tuner.state.spent


def minimise(
    f: Objective, space: Space | Iterable[Dimension], quantity: str = "loss", **others: Any
) -> LocalStudy:
    """Find the point with the smallest `quantity`. See `run` for the options.

    `f(point)` returns the quantity, or a mapping of everything it measured; `time` (seconds) is measured where it
    is missing and `cost` follows from the space's rates. An exception fails the trial; the study goes on.
    """
    return run(f, space, {"minimise": quantity}, **others)


def maximise(
    f: Objective, space: Space | Iterable[Dimension], quantity: str = "score", **others: Any
) -> LocalStudy:
    """Find the point with the largest `quantity`; otherwise as `minimise`."""
    return run(f, space, {"maximise": quantity}, **others)


def run(
    f: Objective,
    space: Space | Iterable[Dimension],
    objective: Mapping[str, str],
    *,
    constraints: Iterable[str] = (),
    budget: Mapping[str, float] | None = None,
    at: str = "full",
    strategy: str | Strategy = "auto",
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    earlier: Iterable[Observation] = (),
    journal: Path | str | None = None,
    workers: int = 1,
    clock: Clock | None = None,
) -> LocalStudy:
    """`budget`: `{"cost": …}`, `{"time": …}` or `{"count": …}`, by default 30 trials. `journal`: a CSV file to which
    every trial is appended and from which an interrupted study resumes. `workers`: threads that evaluate `f`.
    """
    if workers < 1:
        raise InvalidInput(f"workers must be at least 1, not {workers}")
    declared = space if isinstance(space, Space) else Space(tuple(space))
    goal = parse_goal(
        {**objective, "constraints": list(constraints), "budget": budget or {"count": 30}, "at": at}
    )
    path = None if journal is None else Path(journal)
    known = read_csv(path, declared) if path is not None and path.exists() else []
    tuner = Tuner.resume(declared, goal, strategy, known, seed=seed, options=options, earlier=earlier)
    loop = _Loop(f, tuner, clock or SystemClock(), path)
    return LocalStudy(tuner, loop.run(workers))


class _Loop:
    """Asks, evaluates in threads, tells. Only the calling thread touches the tuner."""

    def __init__(self, f: Objective, tuner: Tuner, clock: Clock, journal: Path | None) -> None:
        self.f: Callable[..., Measured] = f
        self.two = len(inspect.signature(f).parameters) > 1
        self.tuner = tuner
        self.clock = clock
        self.journal = journal
        self.curves: list[dict[int, float]] = []
        self.lock = threading.Lock()
        self.last_error: Exception | None = None

    def run(self, workers: int) -> str:
        with ThreadPoolExecutor(workers) as pool:
            running: dict[Future[tuple[dict[str, float], PointOutcome]], Suggestion] = {}
            while True:
                reason = ""
                while not reason and len(running) < workers:
                    answer = self.tuner.ask()
                    if isinstance(answer, Finished):
                        # While others run this may change: it is asked again when one of them ends.
                        reason = answer.reason
                    else:
                        running[pool.submit(self._evaluate, answer)] = answer
                if not running:
                    return reason
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in sorted(done, key=lambda d: running[d].number):
                    suggestion = running.pop(future)
                    values, outcome = future.result()
                    self.tuner.tell(suggestion.number, values, outcome)
                    self._check_first()
                    if self.journal is not None:
                        append_csv(self.journal, self.tuner.observations[-1], self.tuner.problem.space)

    def _check_first(self) -> None:
        """InvalidInput where the first trials all failed, or none returned the objective: a slip, not bad luck."""
        seen, quantity = self.tuner.observations, self.tuner.problem.goal.quantity
        if len(seen) != _FIRST or any(quantity in o.values for o in seen):
            return
        if all(o.outcome is PointOutcome.FAILED for o in seen):
            raise InvalidInput(f"the first {_FIRST} trials all failed, the last with {self.last_error!r}")
        returned = sorted({name for o in seen for name in o.values} - {TIME, COST})
        raise InvalidInput(
            f"the first {_FIRST} trials returned no {quantity}, which is to be optimised: they returned "
            f"{', '.join(returned) or 'nothing'}"
        )

    def _evaluate(self, suggestion: Suggestion) -> tuple[dict[str, float], PointOutcome]:
        began = self.clock.monotonic()

        def elapsed() -> float:
            return self.clock.monotonic() - began

        goal = self.tuner.problem.goal
        with self.lock:
            others = list(self.curves)
        price = self.tuner.problem.space.price_per_hour(suggestion.point)
        trial = RunningTrial(suggestion, goal, others, elapsed, price)
        point: dict[str, Any] = dict(suggestion.point)
        outcome = PointOutcome.COMPLETED
        try:
            values = _numbers(self.f(point, trial) if self.two else self.f(point), goal.quantity)
        except Stopped:
            values, outcome = dict(trial.last), PointOutcome.STOPPED
        except Exception as error:  # noqa: BLE001 - a trial may fail in any way; the study goes on
            log.warning("trial %d failed (%s: %s)", suggestion.number, type(error).__name__, error)
            self.last_error = error
            values, outcome = dict(trial.last), PointOutcome.FAILED
        values.setdefault(TIME, elapsed())
        with self.lock:
            if trial.curve:
                self.curves.append(dict(trial.curve))
        return values, outcome


def _numbers(measured: Measured, quantity: str) -> dict[str, float]:
    """InvalidInput where the objective returned what is no measurement."""
    given = measured if isinstance(measured, Mapping) else {quantity: measured}
    try:
        return {str(name): float(value) for name, value in given.items()}
    except (TypeError, ValueError):
        raise InvalidInput(
            f"a trial returns {quantity} as a number, or a mapping of names to numbers, not {measured!r}"
        ) from None
