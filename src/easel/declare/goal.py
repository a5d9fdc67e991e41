"""What a study is for: objectives, constraints and a budget, over quantities that trials measure.

A quantity is any name that a trial logs: accuracy, time (seconds), cost (money), memory, … . `at` says where
objective and constraints are judged: at `full` fidelity (what is deployed uses all the data), or at `any`
(a model trained on a subsample may itself be deployed).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from easel.errors import InvalidInput

_E = TypeVar("_E", bound=StrEnum)

TIME = "time"
MOST_OBJECTIVES = 6
COST = "cost"
SLICE_TIME, SLICE_COST = "slice_time", "slice_cost"
"""What the last slice of a point used up itself, beside `time` and `cost` of the whole point."""


def own_use(values: Mapping[str, float]) -> dict[str, float]:
    """The values with `time` and `cost` of the last slice alone: what is to be paid when a point goes on."""
    own = {TIME: values.get(SLICE_TIME), COST: values.get(SLICE_COST)}
    return {**values, **{name: value for name, value in own.items() if value is not None}}


class Direction(StrEnum):
    MINIMISE = "minimise"
    MAXIMISE = "maximise"


class At(StrEnum):
    FULL = "full"
    ANY = "any"


class BudgetKind(StrEnum):
    """What exploration may use up: money (`cost`), seconds (`time`) or the number of trials."""

    MONEY = "cost"
    TIME = "time"
    COUNT = "count"


@dataclass(frozen=True)
class Constraint:
    """`quantity ≤ bound`, or `quantity ≥ bound` where `at_least`."""

    quantity: str
    bound: float
    at_least: bool = False

    def __post_init__(self) -> None:
        if not self.quantity:
            raise InvalidInput("a constraint needs a quantity, as in 'accuracy >= 0.85'")
        if not math.isfinite(self.bound):
            raise InvalidInput(f"the bound on {self.quantity!r} must be finite, not {self.bound}")

    def holds(self, values: Mapping[str, float]) -> bool:
        """Whether the limit is kept; not where the quantity was not measured or is not a number."""
        value = values.get(self.quantity, math.nan)
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        return f"{self.quantity} {'>=' if self.at_least else '<='} {self.bound:g}"


_CONSTRAINT = re.compile(r"\s*([A-Za-z_][\w.\-]*)\s*(<=|>=|≤|≥)\s*(\S+)\s*")


def constraint(text: str) -> Constraint:
    """`accuracy >= 0.85` or `time <= 300`."""
    match = _CONSTRAINT.fullmatch(text)
    try:
        bound = float(match[3]) if match else math.nan
    except ValueError:
        bound = math.nan
    if match is None or math.isnan(bound):
        raise InvalidInput(f"a constraint reads 'quantity <= number' or 'quantity >= number', not {text!r}")
    return Constraint(match[1], bound, match[2] in (">=", "≥"))


@dataclass(frozen=True)
class StudyBudget:
    kind: BudgetKind
    amount: float

    def __post_init__(self) -> None:
        if not self.amount > 0:
            raise InvalidInput(f"a budget must be above 0, not {self.amount}")

    def spend(self, values: Mapping[str, float]) -> float:
        """What one finished trial used up; unknown or broken measurements count as nothing."""
        if self.kind is BudgetKind.COUNT:
            return 1.0
        used = values.get(self.kind.value, 0.0)
        return used if math.isfinite(used) and used > 0 else 0.0


UNLIMITED = StudyBudget(BudgetKind.COUNT, math.inf)


@dataclass(frozen=True)
class Goal:
    quantity: str
    direction: Direction
    constraints: tuple[Constraint, ...] = ()
    budget: StudyBudget = UNLIMITED
    at: At = At.FULL
    others: Mapping[str, Direction] = field(default_factory=dict)
    """Further objectives: the search looks for the whole front between them and the first."""
    also: Mapping[str, Direction] = field(default_factory=dict)
    """Reported as a front beside the objective; they do not steer the search."""

    def __post_init__(self) -> None:
        if not self.quantity:
            raise InvalidInput("the objective needs a quantity, as in {'maximise': 'accuracy'}")
        if self.quantity in self.others:
            raise InvalidInput(f"{self.quantity!r} is named twice among the objectives")
        if len(self.others) >= MOST_OBJECTIVES:
            raise InvalidInput(f"a study has at most {MOST_OBJECTIVES} objectives")
        for i, one in enumerate(self.constraints):
            for other in self.constraints[:i]:
                if one.quantity != other.quantity:
                    continue
                if one.at_least == other.at_least:
                    raise InvalidInput(f"{one} repeats {other}; keep the tighter one")
                low, high = (one, other) if one.at_least else (other, one)
                if low.bound > high.bound:
                    raise InvalidInput(f"{one} contradicts {other}: no value meets both")

    @property
    def sign(self) -> float:
        """+1 where larger is better, −1 where smaller is."""
        return 1.0 if self.direction is Direction.MAXIMISE else -1.0

    @property
    def quantities(self) -> tuple[str, ...]:
        """The objectives first, then every constrained quantity once."""
        return tuple(dict.fromkeys((*self.objectives, *(c.quantity for c in self.constraints))))

    @property
    def objectives(self) -> dict[str, Direction]:
        """All that is to be optimised, the first one first."""
        return {self.quantity: self.direction, **self.others}

    def meets(self, values: Mapping[str, float]) -> bool:
        """All constraints hold and every objective was measured."""
        measured = all(math.isfinite(values.get(name, math.nan)) for name in self.objectives)
        return measured and all(constraint.holds(values) for constraint in self.constraints)

    def better(self, a: Mapping[str, float], b: Mapping[str, float]) -> bool:
        return self.sign * a[self.quantity] > self.sign * b[self.quantity]

    def to_dict(self) -> dict[str, Any]:
        plain: dict[str, Any] = {self.direction.value: self.quantity, "at": self.at.value}
        if self.constraints:
            plain["constraints"] = [str_exact(c) for c in self.constraints]
        if math.isfinite(self.budget.amount):
            plain["budget"] = {self.budget.kind.value: self.budget.amount}
        if self.others:
            plain["and"] = {name: direction.value for name, direction in self.others.items()}
        if self.also:
            plain["also"] = {name: direction.value for name, direction in self.also.items()}
        return plain


def str_exact(c: Constraint) -> str:
    return f"{c.quantity} {'>=' if c.at_least else '<='} {c.bound!r}"


def minimise(
    quantity: str, *constraints: str, budget: Mapping[str, float] | None = None, at: str = "full"
) -> Goal:
    """`minimise("cost", "accuracy >= 0.85", "time <= 300", budget={"cost": 20}, at="any")`"""
    return parse_goal({"minimise": quantity, "constraints": constraints, "budget": budget, "at": at})


def maximise(
    quantity: str, *constraints: str, budget: Mapping[str, float] | None = None, at: str = "full"
) -> Goal:
    """`maximise("accuracy", "cost <= 0.10", budget={"cost": 2})`"""
    return parse_goal({"maximise": quantity, "constraints": constraints, "budget": budget, "at": at})


def parse_goal(data: Mapping[str, Any]) -> Goal:
    """A goal from plain values, as written in a study's YAML file.

    Several objectives: `{"maximise": "accuracy", "minimise": ["time", "memory"]}`, the first named first.
    """
    known = {"minimise", "maximise", "and", "constraints", "budget", "at", "also"}
    if unknown := sorted(set(data) - known):
        raise InvalidInput(f"a goal has {', '.join(sorted(known))}; it does not have {', '.join(unknown)}")
    (quantity, direction), *others = _objectives(data)
    budget = UNLIMITED
    if given := data.get("budget"):
        if not isinstance(given, Mapping) or len(given) != 1:
            raise InvalidInput("a budget names exactly one of cost, time and count, as in {'cost': 20}")
        [(kind, amount)] = given.items()
        budget = StudyBudget(_member(BudgetKind, kind, "budget"), _number(amount, "budget"))
    return Goal(
        quantity=quantity,
        direction=direction,
        others=dict(others),
        constraints=tuple(constraint(str(text)) for text in data.get("constraints") or ()),
        budget=budget,
        at=_member(At, data.get("at") or "full", "at"),
        also={
            str(name): _member(Direction, direction, "also")
            for name, direction in (data.get("also") or {}).items()
        },
    )


def _objectives(data: Mapping[str, Any]) -> list[tuple[str, Direction]]:
    found: list[tuple[str, Direction]] = []
    for key in data:
        if key not in ("minimise", "maximise") or not data[key]:
            continue
        names = data[key] if isinstance(data[key], list | tuple) else [data[key]]
        found += [(str(name), Direction(key)) for name in names]
    more = data.get("and") or {}
    if not isinstance(more, Mapping):
        raise InvalidInput("`and` maps further objectives to minimise or maximise, as in {time: minimise}")
    found += [(str(name), _member(Direction, direction, "and")) for name, direction in more.items()]
    if not found:
        raise InvalidInput("a goal names what to 'minimise' or to 'maximise'")
    names = [name for name, _ in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidInput(f"{twice!r} is named twice among the objectives")
    return found


def _number(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(f"{what} takes a number, not {value!r}")
    return float(value)


def _member(kind: type[_E], value: object, what: str) -> _E:
    try:
        return kind(str(value))
    except ValueError:
        raise InvalidInput(f"{what} is one of {', '.join(m.value for m in kind)}, not {value!r}") from None
