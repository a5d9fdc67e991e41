"""What a point's resources cost per hour: a sum of terms, each a rate times the amounts that it scales with.

`per_hour = base + Σ_terms rate · Π amounts`, where a term's rate is fixed or looked up by one dimension's value.
That covers "per vCPU plus per GB" and "price of this machine type times their number plus one coordinator".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from easel.declare.dimensions import Categorical, Dimension, Ordinal, Value
from easel.errors import InvalidInput


@dataclass(frozen=True)
class Term:
    """`rate`, or `table[str(point[by])]`, multiplied by the value of every dimension in `times`."""

    rate: float = 0.0
    by: str | None = None
    table: Mapping[str, float] = field(default_factory=dict)
    times: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.by is None) == bool(self.table):
            raise InvalidInput("a price term has either a fixed rate or a table together with `by`")
        for rate in (self.rate, *self.table.values()):
            if not math.isfinite(rate) or rate < 0:
                raise InvalidInput(f"a rate is a finite number of at least 0, not {rate}")

    def per_hour(self, point: Mapping[str, Value]) -> float:
        rate = self.rate if self.by is None else self.table[str(point[self.by])]
        return rate * math.prod(float(point[name]) for name in self.times)


@dataclass(frozen=True)
class Rates:
    terms: tuple[Term, ...] = ()
    base: float = 0.0

    def __post_init__(self) -> None:
        if not math.isfinite(self.base) or self.base < 0:
            raise InvalidInput(f"the base price is a finite number of at least 0, not {self.base}")

    def check(self, dimensions: Mapping[str, Dimension]) -> None:
        """InvalidInput where a term names no dimension, a conditional one, or misses one of its values."""
        for term in self.terms:
            for name in (*term.times, *(() if term.by is None else (term.by,))):
                if name not in dimensions:
                    raise InvalidInput(f"a price term names {name!r}, which is not a dimension")
                if dimensions[name].when is not None:
                    raise InvalidInput(f"a price term depends on {name!r}, which is conditional")
            for name in term.times:
                if any(isinstance(level, str) for level in dimensions[name].levels(2)):
                    raise InvalidInput(f"a price term multiplies by {name!r}, whose values are not numbers")
            if term.by is not None:
                dimension = dimensions[term.by]
                if not isinstance(dimension, Categorical | Ordinal):
                    raise InvalidInput(f"a price table needs listed values; {term.by!r} is a range")
                missing = [str(v) for v in dimension.values if str(v) not in term.table]
                if missing:
                    raise InvalidInput(f"the price table for {term.by!r} lacks {', '.join(missing)}")

    def per_hour(self, point: Mapping[str, Value]) -> float:
        return self.base + sum(term.per_hour(point) for term in self.terms)
