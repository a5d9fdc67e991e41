"""Search spaces, goals and the tuner: what a notebook or a script needs to declare a study."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from easel.declare.dimensions import Categorical, Float, Integer, Ordinal, When, fraction
from easel.declare.dimensions import DimensionRole as Role
from easel.declare.goal import Goal, maximise, minimise
from easel.declare.rates import Rates, Term
from easel.declare.space import Space
from easel.records.study import Finished

if TYPE_CHECKING:
    from easel.tune.tuner import Tuner

__all__ = [
    "Categorical",
    "Finished",
    "Float",
    "Goal",
    "Integer",
    "Ordinal",
    "Rates",
    "Role",
    "Space",
    "Term",
    "Tuner",
    "When",
    "fraction",
    "maximise",
    "minimise",
]


def __getattr__(name: str) -> Any:
    if name == "Tuner":  # the only one that needs numpy
        return import_module("easel.tune.tuner").Tuner
    raise AttributeError(f"module 'easel.study' has no attribute {name!r}")
