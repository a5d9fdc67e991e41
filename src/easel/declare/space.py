"""A search space: named dimensions, when each applies, which combinations are forbidden, what a point costs.

A point is a plain mapping from dimension name to value; a dimension that does not apply is absent from it.
Everything here is a frozen value without I/O, so that a space travels over the wire and into a file as it is.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from easel.declare.dimensions import Dimension, DimensionRole, Value
from easel.declare.rates import Rates
from easel.errors import InvalidInput

__all__ = ["Forbidden", "Point", "Space", "parse_space", "point_key"]

Point = Mapping[str, Value]
PointKey = tuple[tuple[str, Value], ...]

# A space that rejects more draws than this in a row is taken to be empty.
_DRAWS = 10_000


@dataclass(frozen=True)
class Forbidden:
    """Points in which every named dimension has one of its listed values."""

    values: Mapping[str, tuple[Value, ...]]

    def matches(self, point: Point) -> bool:
        return all(name in point and point[name] in values for name, values in self.values.items())


def point_key(point: Point) -> PointKey:
    """A hashable form, the same for equal points whatever the order of their names."""
    return tuple(sorted(point.items()))


@dataclass(frozen=True)
class Space:
    dimensions: tuple[Annotated[Dimension, Field(discriminator="type")], ...]
    forbidden: tuple[Forbidden, ...] = ()
    rates: Rates | None = field(default=None)

    def __post_init__(self) -> None:
        if not self.dimensions:
            raise InvalidInput("the space has no dimensions; declare at least one")
        names = [dimension.name for dimension in self.dimensions]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise InvalidInput(f"dimension names must differ; repeated: {', '.join(twice)}")
        self._check_conditions()
        for rule in self.forbidden:
            if not rule.values:
                raise InvalidInput("a forbidden combination without dimensions would forbid every point")
            for name, values in rule.values.items():
                if name not in self._by_name:
                    raise InvalidInput(f"a forbidden combination names {name!r}, which is not a dimension")
                for value in values:
                    self._by_name[name].check(value)
        if self.rates is not None:
            self.rates.check(self._by_name)
        if all(dimension.role is DimensionRole.FIDELITY for dimension in self.dimensions):
            raise InvalidInput("every dimension is a fidelity: nothing is left to tune")
        # A contradictory space is found when it is declared, not hours into a study.
        self.sample(random.Random(0).random)  # noqa: S311 - nothing secret

    def _check_conditions(self) -> None:
        seen: set[str] = set()
        for dimension in self.dimensions:
            if dimension.when is not None:
                parent = dimension.when.dimension
                if parent not in seen:
                    raise InvalidInput(
                        f"dimension {dimension.name!r} depends on {parent!r}, which must be declared before it"
                    )
                for value in dimension.when.values:
                    self._by_name[parent].check(value)
                if dimension.role is DimensionRole.FIDELITY:
                    raise InvalidInput(f"fidelity {dimension.name!r} cannot be conditional")
            seen.add(dimension.name)

    @cached_property
    def _by_name(self) -> dict[str, Dimension]:
        return {dimension.name: dimension for dimension in self.dimensions}

    def __getitem__(self, name: str) -> Dimension:
        if name not in self._by_name:
            raise InvalidInput(f"{name!r} is not a dimension; there are {', '.join(self._by_name)}")
        return self._by_name[name]

    @cached_property
    def fidelities(self) -> tuple[Dimension, ...]:
        """Dimensions that make a trial cheaper and less telling; a study is judged at the top of each."""
        return tuple(dimension for dimension in self.dimensions if dimension.role is DimensionRole.FIDELITY)

    @cached_property
    def resources(self) -> tuple[Dimension, ...]:
        return tuple(dimension for dimension in self.dimensions if dimension.role is DimensionRole.RESOURCE)

    def active(self, dimension: Dimension, point: Point) -> bool:
        return dimension.when is None or point.get(dimension.when.dimension) in dimension.when.values

    def check(self, point: Point) -> dict[str, Value]:
        """The point in canonical form (declared order and types); InvalidInput when it is not in the space."""
        canonical: dict[str, Value] = {}
        for dimension in self.dimensions:
            if not self.active(dimension, canonical):
                if dimension.name in point:
                    raise InvalidInput(f"{dimension.name!r} does not apply to this point; leave it out")
                continue
            if dimension.name not in point:
                raise InvalidInput(f"the point lacks {dimension.name!r}")
            canonical[dimension.name] = dimension.check(point[dimension.name])
        if unknown := sorted(set(point) - set(self._by_name)):
            raise InvalidInput(f"the point names what is not a dimension: {', '.join(unknown)}")
        if self.is_forbidden(canonical):
            raise InvalidInput(f"the combination is forbidden: {canonical}")
        return canonical

    def contains(self, point: Point) -> bool:
        try:
            self.check(point)
        except InvalidInput:
            return False
        return True

    def is_forbidden(self, point: Point) -> bool:
        return any(rule.matches(point) for rule in self.forbidden)

    @cached_property
    def is_finite(self) -> bool:
        return all(dimension.count is not None for dimension in self.dimensions)

    @cached_property
    def combinations(self) -> float:
        """An upper bound on the number of points: conditions and forbidden combinations only lower it."""
        return math.prod(math.inf if d.count is None else d.count for d in self.dimensions)

    def grid(self, per_float: int = 5) -> Iterator[dict[str, Value]]:
        """Every point, `Float` dimensions taken at `per_float` evenly spaced values."""

        def extend(point: dict[str, Value], left: tuple[Dimension, ...]) -> Iterator[dict[str, Value]]:
            if not left:
                if not self.is_forbidden(point):
                    yield dict(point)
                return
            dimension, *rest = left
            if not self.active(dimension, point):
                yield from extend(point, tuple(rest))
                return
            for value in dimension.levels(per_float):
                point[dimension.name] = value
                yield from extend(point, tuple(rest))
                del point[dimension.name]

        return extend({}, self.dimensions)

    def from_unit(self, units: Mapping[str, float]) -> dict[str, Value] | None:
        """The point at quantiles `units` in [0, 1); None where that combination is forbidden."""
        point: dict[str, Value] = {}
        for dimension in self.dimensions:
            if self.active(dimension, point):
                point[dimension.name] = dimension.at(units[dimension.name])
        return None if self.is_forbidden(point) else point

    def sample(self, uniform: Callable[[], float]) -> dict[str, Value]:
        """A uniform draw (log-uniform on log scales) from the points that are not forbidden.

        `uniform` gives numbers in [0, 1), as `random.Random.random` and `numpy.random.Generator.random` do.
        """
        for _ in range(_DRAWS):
            point = self.from_unit({dimension.name: uniform() for dimension in self.dimensions})
            if point is not None:
                return point
        point = next(itertools.islice(self.grid(), 1), None)
        if point is None:
            raise InvalidInput("the forbidden combinations leave no point; drop one of them")
        return point

    def at_target(self, point: Point) -> dict[str, Value]:
        """The same point at the top of every fidelity: the full data, all epochs."""
        return {**point, **{dimension.name: dimension.target for dimension in self.fidelities}}

    def is_target(self, point: Point) -> bool:
        return all(point[dimension.name] == dimension.target for dimension in self.fidelities)

    def price_per_hour(self, point: Point) -> float | None:
        """Money per hour of the resources that the point names; None where the space has no rates."""
        return None if self.rates is None else self.rates.per_hour(point)

    @cached_property
    def fingerprint(self) -> str:
        """Changes whenever the set of points or their prices do; a resumed study compares it."""
        text = json.dumps(asdict(self), sort_keys=True, default=list)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for YAML or JSON; `parse_space` reads them back."""
        plain: dict[str, Any] = json.loads(_ADAPTER.dump_json(self))
        return plain


_ADAPTER: TypeAdapter[Space] = TypeAdapter(Space)


def parse_space(data: object) -> Space:
    """A space from plain values: `{"dimensions": [{"type": "float", "name": "lr", ...}], ...}`."""
    try:
        return _ADAPTER.validate_python(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(f"the space is not valid at {place or 'its top'}: {first['msg']}") from error
