"""The kinds of dimension that a search space is made of.

Every kind offers the same few operations, so that nothing else needs to ask which kind it has:
`check` (canonical value or InvalidInput), `at` (quantile to value), `unit` (value to [0, 1]), `levels`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from easel.errors import InvalidInput

Value = bool | int | float | str


class DimensionRole(StrEnum):
    """What a dimension stands for; the platform provisions resources and subsamples data itself."""

    HYPERPARAMETER = "hyperparameter"
    RESOURCE = "resource"
    FIDELITY = "fidelity"


@dataclass(frozen=True)
class When:
    """The dimension applies only where an earlier dimension has one of these values."""

    dimension: str
    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise InvalidInput(f"a condition on {self.dimension!r} without values never holds")


def _named(name: str) -> None:
    if not name or not name.replace("_", "a").replace("-", "a").replace(".", "a").isalnum():
        raise InvalidInput(f"a dimension's name consists of letters, digits, '_', '-' and '.', not {name!r}")


def _number(name: str, value: Value) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidInput(f"{name!r} takes a finite number, not {value!r}")
    return float(value)


def _range(name: str, low: float, high: float, log: bool) -> None:
    _number(name, low), _number(name, high)
    if low > high:
        raise InvalidInput(f"{name!r} is empty: low {low} is above high {high}")
    if log and low <= 0:
        raise InvalidInput(f"{name!r} is on a log scale, so its low end must be above 0, not {low}")


@dataclass(frozen=True)
class Float:
    """A real number in [low, high], uniform or log-uniform."""

    name: str
    low: float
    high: float
    log: bool = False
    role: DimensionRole = DimensionRole.HYPERPARAMETER
    when: When | None = None
    type: Literal["float"] = "float"

    def __post_init__(self) -> None:
        _named(self.name)
        _range(self.name, self.low, self.high, self.log)

    @property
    def count(self) -> int | None:
        return 1 if self.low == self.high else None

    @property
    def target(self) -> float:
        return self.high

    def check(self, value: Value) -> float:
        number = _number(self.name, value)
        # A value that went through a text format may differ in its last digit.
        slack = 1e-9 * max(abs(self.low), abs(self.high))
        if not self.low - slack <= number <= self.high + slack:
            raise InvalidInput(f"{self.name!r} lies in [{self.low}, {self.high}], not at {number}")
        return min(max(number, self.low), self.high)

    def at(self, unit: float) -> float:
        if self.log:
            value = math.exp(math.log(self.low) + unit * (math.log(self.high) - math.log(self.low)))
        else:
            value = self.low + unit * (self.high - self.low)
        return min(max(value, self.low), self.high)

    def unit(self, value: Value) -> float:
        number = self.check(value)
        if self.low == self.high:
            return 0.5
        if self.log:
            return (math.log(number) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return (number - self.low) / (self.high - self.low)

    def levels(self, per_float: int) -> tuple[float, ...]:
        if self.low == self.high or per_float < 2:
            return (self.at(0.5),)
        return tuple(self.at(i / (per_float - 1)) for i in range(per_float))


@dataclass(frozen=True)
class Integer:
    """A whole number low, low + step, … ≤ high, uniform or log-uniform."""

    name: str
    low: int
    high: int
    log: bool = False
    step: int = 1
    role: DimensionRole = DimensionRole.HYPERPARAMETER
    when: When | None = None
    type: Literal["integer"] = "integer"

    def __post_init__(self) -> None:
        _named(self.name)
        _range(self.name, self.low, self.high, self.log)
        if self.step < 1:
            raise InvalidInput(f"{self.name!r} needs a step of at least 1, not {self.step}")

    @property
    def count(self) -> int | None:
        return (self.high - self.low) // self.step + 1

    @property
    def target(self) -> int:
        return self.low + (self.high - self.low) // self.step * self.step

    def check(self, value: Value) -> int:
        number = _number(self.name, value)
        whole = round(number)
        if abs(number - whole) > 1e-9 or not self.low <= whole <= self.high:
            raise InvalidInput(f"{self.name!r} is a whole number in [{self.low}, {self.high}], not {value!r}")
        if (whole - self.low) % self.step:
            raise InvalidInput(
                f"{self.name!r} goes from {self.low} in steps of {self.step}; {whole} is between"
            )
        return whole

    def at(self, unit: float) -> int:
        if self.log:
            low, high = math.log(self.low - 0.5), math.log(self.high + 0.5)
            number = round((math.exp(low + unit * (high - low)) - self.low) / self.step)
        else:
            number = int(unit * ((self.high - self.low) // self.step + 1))
        return min(max(self.low + number * self.step, self.low), self.target)

    def unit(self, value: Value) -> float:
        number = self.check(value)
        if self.low == self.high:
            return 0.5
        if self.log:
            return (math.log(number) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return (number - self.low) / (self.high - self.low)

    def levels(self, per_float: int) -> tuple[int, ...]:
        return tuple(range(self.low, self.high + 1, self.step))


@dataclass(frozen=True)
class Ordinal:
    """One of several values in a meaningful order; neighbours count as equally far apart."""

    name: str
    values: tuple[Value, ...]
    role: DimensionRole = DimensionRole.HYPERPARAMETER
    when: When | None = None
    type: Literal["ordinal"] = "ordinal"

    def __post_init__(self) -> None:
        _named(self.name)
        _distinct(self.name, self.values)
        if self.role is DimensionRole.FIDELITY:
            numbers = [_number(self.name, value) for value in self.values]
            if numbers != sorted(numbers) or numbers[0] <= 0:
                raise InvalidInput(f"fidelity {self.name!r} needs positive numbers in rising order")

    @property
    def count(self) -> int | None:
        return len(self.values)

    @property
    def target(self) -> Value:
        return self.values[-1]

    def check(self, value: Value) -> Value:
        return _member(self.name, self.values, value)

    def at(self, unit: float) -> Value:
        return self.values[min(int(unit * len(self.values)), len(self.values) - 1)]

    def unit(self, value: Value) -> float:
        if len(self.values) == 1:
            return 0.5
        return self.values.index(self.check(value)) / (len(self.values) - 1)

    def levels(self, per_float: int) -> tuple[Value, ...]:
        return self.values


@dataclass(frozen=True)
class Categorical:
    """One of several values without an order."""

    name: str
    values: tuple[Value, ...]
    role: DimensionRole = DimensionRole.HYPERPARAMETER
    when: When | None = None
    type: Literal["categorical"] = "categorical"

    def __post_init__(self) -> None:
        _named(self.name)
        _distinct(self.name, self.values)
        if self.role is DimensionRole.FIDELITY:
            raise InvalidInput(
                f"fidelity {self.name!r} needs an order: declare it as ordinal, integer or float"
            )

    @property
    def count(self) -> int | None:
        return len(self.values)

    @property
    def target(self) -> Value:
        raise InvalidInput(f"{self.name!r} is a category and has no top")

    def check(self, value: Value) -> Value:
        return _member(self.name, self.values, value)

    def at(self, unit: float) -> Value:
        return self.values[min(int(unit * len(self.values)), len(self.values) - 1)]

    def unit(self, value: Value) -> float:
        if len(self.values) == 1:
            return 0.5
        return self.values.index(self.check(value)) / (len(self.values) - 1)

    def levels(self, per_float: int) -> tuple[Value, ...]:
        return self.values


Dimension = Float | Integer | Ordinal | Categorical


def _distinct(name: str, values: tuple[Value, ...]) -> None:
    if not values:
        raise InvalidInput(f"{name!r} has no values")
    for i, value in enumerate(values):
        if any(_same(value, other) for other in values[:i]):
            raise InvalidInput(f"{name!r} lists {value!r} twice")


def _same(a: Value, b: Value) -> bool:
    """Equal, where True is not 1 and a number read back from text may differ in its last digit."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=0.0)
    return a == b


def _member(name: str, values: tuple[Value, ...], value: Value) -> Value:
    for known in values:
        if _same(known, value):
            return known
    raise InvalidInput(f"{name!r} is one of {', '.join(repr(v) for v in values)}, not {value!r}")


def fraction(name: str = "data_fraction", values: tuple[float, ...] = (0.1, 0.25, 0.5, 1.0)) -> Ordinal:
    """The share of the training data that a trial sees; samples are nested, so smaller lie inside larger."""
    if any(not 0 < value <= 1 for value in values):
        raise InvalidInput(f"{name!r} holds shares of the data, each above 0 and at most 1")
    return Ordinal(name, values, role=DimensionRole.FIDELITY)
