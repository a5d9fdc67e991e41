"""Run a study inside one Python process: `easel.minimise(f, space, "loss")`. No server needed.

Without a space the objective defines it by running: see `easel.tune.by_run`.
"""

from __future__ import annotations

import inspect
import logging
import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from easel.clock import Clock, SystemClock
from easel.declare.dimensions import Dimension, Value
from easel.declare.goal import COST, TIME, BudgetKind, Goal, parse_goal
from easel.declare.space import Space
from easel.errors import InvalidInput
from easel.records.study import Finished, Observation, PointOutcome, Recommendation, Suggestion
from easel.tune.curves import hopeless
from easel.tune.exchange.csv import append_csv, read_csv
from easel.tune.report import front
from easel.tune.strategy import Strategy
from easel.tune.tuner import Tuner

if TYPE_CHECKING:
    from easel.tune.by_run import DefiningTrial

_FIRST = 3
log = logging.getLogger("easel.tune")

Measured = float | Mapping[str, float]
Objective = Callable[[dict[str, Any]], Measured] | Callable[[dict[str, Any], "RunningTrial"], Measured]
Defining = Callable[["DefiningTrial"], Measured]
"""An objective that says by running what it can be given: `lambda trial: trial.float("x", 0, 1) ** 2`."""
Evaluated = tuple[dict[str, float], PointOutcome, Mapping[str, Value]]
Quantities = str | Sequence[str]


class Stopped(Exception):
    """Raised inside the objective by `RunningTrial.report` when the trial should end now."""


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
        if not self.goal.others and hopeless(self.curve, self.others, larger_is_better=self.goal.sign > 0):
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
    def front(self) -> list[Observation]:
        """The trials that no other beats in all objectives, the best in the first objective first."""
        return front(self.tuner.state)

    @property
    def spent(self) -> float:
        return self.tuner.state.spent


@overload
def minimise(f: Defining, space: None = None, quantity: Quantities = "loss", **others: Any) -> LocalStudy: ...
@overload
def minimise(
    f: Objective, space: Space | Iterable[Dimension], quantity: Quantities = "loss", **others: Any
) -> LocalStudy: ...
def minimise(
    f: Objective | Defining,
    space: Space | Iterable[Dimension] | None = None,
    quantity: Quantities = "loss",
    **others: Any,
) -> LocalStudy:
    """Find the point with the smallest `quantity`, or the front between several. See `run` for the options.

    `f(point)` returns the quantity, or a mapping of everything it measured; `time` (seconds) is measured where it is
    missing and `cost` follows from the space's rates. An exception fails the trial; the study goes on. Without a space,
    `f(trial)` asks for values as it runs: `trial.float("rate", 1e-4, 1, log=True)`.
    """
    return run(f, space, {"minimise": quantity}, **others)


@overload
def maximise(
    f: Defining, space: None = None, quantity: Quantities = "score", **others: Any
) -> LocalStudy: ...
@overload
def maximise(
    f: Objective, space: Space | Iterable[Dimension], quantity: Quantities = "score", **others: Any
) -> LocalStudy: ...
def maximise(
    f: Objective | Defining,
    space: Space | Iterable[Dimension] | None = None,
    quantity: Quantities = "score",
    **others: Any,
) -> LocalStudy:
    """Find the point with the largest `quantity`; otherwise as `minimise`."""
    return run(f, space, {"maximise": quantity}, **others)


def run(
    f: Objective | Defining,
    space: Space | Iterable[Dimension] | None,
    objective: Mapping[str, Quantities],
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
    `objective`: `{"minimise": "loss"}`, or several, as `{"maximise": "accuracy", "minimise": "time"}`.
    """
    if workers < 1:
        raise InvalidInput(f"workers must be at least 1, not {workers}")
    goal = parse_goal(
        {**objective, "constraints": list(constraints), "budget": budget or {"count": 30}, "at": at}
    )
    if space is None:
        if journal is not None or tuple(earlier):
            raise InvalidInput("a journal and earlier trials need the space: give it as the second argument")
        from easel.tune.by_run import DefiningLoop

        asking: Any = f
        defining = DefiningLoop(asking, goal, strategy, seed, options, clock or SystemClock())
        reason = defining.run(workers)
        return LocalStudy(defining.tuner, reason)
    declared = space if isinstance(space, Space) else Space(tuple(space))
    path = None if journal is None else Path(journal)
    known = read_csv(path, declared) if path is not None and path.exists() else []
    tuner = Tuner.resume(declared, goal, strategy, known, seed=seed, options=options, earlier=earlier)
    given: Any = f
    loop = StudyLoop(given, tuner, clock or SystemClock(), path)
    return LocalStudy(tuner, loop.run(workers))


class StudyLoop:
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
            running: dict[Future[Evaluated], Suggestion] = {}
            while True:
                reason = ""
                while not reason and len(running) < workers:
                    answer = self.tuner.ask()
                    if isinstance(answer, Finished):
                        # While others run this may change: it is asked again when one of them ends.
                        reason = answer.reason
                    else:
                        running[pool.submit(self.evaluate, answer)] = answer
                if not running:
                    return reason
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in sorted(done, key=lambda d: running[d].number):
                    self.finish(running.pop(future), *future.result())

    def finish(
        self,
        suggestion: Suggestion,
        values: dict[str, float],
        outcome: PointOutcome,
        params: Mapping[str, Value],
    ) -> None:
        """Tell what a trial measured; `params` are the values that it was given."""
        self.tuner.tell(suggestion.number, values, outcome)
        self.check_first(self.tuner.observations)
        if self.journal is not None:
            append_csv(self.journal, self.tuner.observations[-1], self.tuner.problem.space)

    def check_first(self, seen: Sequence[Observation]) -> None:
        """InvalidInput where the first trials all failed, or none returned the objectives: a slip, not bad luck."""
        wanted = list(self.tuner.problem.goal.objectives)
        if len(seen) != _FIRST:
            return
        if all(o.outcome is PointOutcome.FAILED for o in seen):
            raise InvalidInput(f"the first {_FIRST} trials all failed, the last with {self.last_error!r}")
        missing = next((name for name in wanted if not any(name in o.values for o in seen)), None)
        if missing is None:
            return
        returned = sorted({name for o in seen for name in o.values} - {TIME, COST})
        raise InvalidInput(
            f"the first {_FIRST} trials returned no {missing}, which is to be optimised: they returned "
            f"{', '.join(returned) or 'nothing'}"
        )

    def evaluate(self, suggestion: Suggestion) -> Evaluated:
        def call(elapsed: Callable[[], float], others: list[dict[int, float]]) -> tuple[RunningTrial, Any]:
            price = self.tuner.problem.space.price_per_hour(suggestion.point)
            trial = RunningTrial(suggestion, self.tuner.problem.goal, others, elapsed, price)
            point: dict[str, Any] = dict(suggestion.point)
            return trial, lambda: self.f(point, trial) if self.two else self.f(point)

        return measure(self, suggestion, call)


def measure(
    loop: StudyLoop,
    suggestion: Suggestion,
    call: Callable[
        [Callable[[], float], list[dict[int, float]]], tuple[RunningTrial, Callable[[], Measured]]
    ],
) -> Evaluated:
    """Run one trial and catch whatever it does: what it measured, how it ended, and what it was given."""
    began = loop.clock.monotonic()

    def elapsed() -> float:
        return loop.clock.monotonic() - began

    with loop.lock:
        others = list(loop.curves)
    trial, run_it = call(elapsed, others)
    outcome = PointOutcome.COMPLETED
    try:
        values = _numbers(run_it(), trial.goal.quantity)
    except Stopped:
        values, outcome = dict(trial.last), PointOutcome.STOPPED
    except Exception as error:  # noqa: BLE001 - a trial may fail in any way; the study goes on
        log.warning("trial %d failed (%s: %s)", suggestion.number, type(error).__name__, error)
        loop.last_error = error
        values, outcome = dict(trial.last), PointOutcome.FAILED
    values.setdefault(TIME, elapsed())
    with loop.lock:
        if trial.curve:
            loop.curves.append(dict(trial.curve))
    return values, outcome, getattr(trial, "params", suggestion.point)


def _numbers(measured: Measured, quantity: str) -> dict[str, float]:
    """InvalidInput where the objective returned what is no measurement."""
    given = measured if isinstance(measured, Mapping) else {quantity: measured}
    try:
        return {str(name): float(value) for name, value in given.items()}
    except (TypeError, ValueError):
        raise InvalidInput(
            f"a trial returns {quantity} as a number, or a mapping of names to numbers, not {measured!r}"
        ) from None
