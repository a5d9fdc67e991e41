"""What a point's resources cost per hour: by the study's own rates, or by the platform's price book."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import asdict, replace

from easel.declare.dimensions import Categorical, Dimension, Ordinal, Value
from easel.declare.rates import Rates, Term
from easel.declare.resources import Resources
from easel.declare.space import Point, Space
from easel.declare.study import PROVISIONED, StudySpec, provisioned
from easel.flow.prices import book_now, price_history, shape_of
from easel.price.grid import ON_CPU
from easel.store.engine import Tx

_MOST_COMBINATIONS = 4096


def per_hour(tx: Tx, spec: StudySpec, point: Point) -> float:
    if spec.space.rates is not None:
        return spec.space.rates.per_hour(point)
    return _book_price(tx)(provisioned(spec.job.resources, point))


def _book_price(tx: Tx) -> Callable[[Resources], float]:
    book, history = book_now(tx), price_history(tx)

    def price(resources: Resources) -> float:
        shape = shape_of(asdict(resources), history)
        gpu = None if shape.device == ON_CPU else shape.device
        return float(book.rate(shape.cpus, shape.memory_mb, gpu, shape.gpus))

    return price


def with_book_rates(tx: Tx, spec: StudySpec) -> StudySpec:
    """The study with today's prices as its rates, so that cost follows from time and needs no model of its own.

    A book that is no sum over the dimensions, or dimensions without listed values, leave it as it is: cost is
    then measured and modelled like any other quantity.
    """
    if spec.space.rates is not None:
        return spec
    rates = rates_of(spec.space, _book_price(tx), spec.job.resources)
    if rates is None:
        return spec
    space = Space(spec.space.dimensions, spec.space.forbidden, rates)
    return replace(spec, space=space)


def rates_of(space: Space, price: Callable[[Resources], float], base: Resources) -> Rates | None:
    """`price` as a base and one table for each provisioned dimension, where it is such a sum."""
    varied = [d for d in space.resources if d.name in PROVISIONED]
    if any(not isinstance(d, Categorical | Ordinal) for d in varied):
        return None

    def at(point: dict[str, Value]) -> float:
        return price(provisioned(base, point))

    cheapest: dict[str, Value] = {d.name: min(_levels(d), key=lambda v: at({d.name: v})) for d in varied}
    lowest = at(cheapest)
    terms = tuple(
        Term(
            by=d.name,
            table={str(v): max(at({**cheapest, d.name: v}) - lowest, 0.0) for v in _levels(d)},
        )
        for d in varied
    )
    rates = Rates(terms, lowest)
    combinations = itertools.product(*([(d.name, v) for v in _levels(d)] for d in varied))
    for combination in itertools.islice(combinations, _MOST_COMBINATIONS):
        point = dict(combination)
        if not math.isclose(rates.per_hour(point), at(point), rel_tol=1e-6, abs_tol=1e-12):
            return None
    return rates


def _levels(dimension: Dimension) -> tuple[Value, ...]:
    return tuple(dimension.levels(2))
