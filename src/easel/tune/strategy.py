"""The interface of a strategy, and the registry by which studies name one.

A strategy is a pure function of the study's state: all randomness comes from `State.rng`, all memory from the
history. Whoever kills a study and resumes it from its history therefore gets the same next suggestion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol

from easel.declare.space import Point
from easel.errors import InvalidInput
from easel.records.study import Finished, Recommendation
from easel.tune.state import State


@dataclass(frozen=True)
class PointChoice:
    """The next point and the reasons: what was predicted there, its score, the runner-up's."""

    point: Point
    why: Mapping[str, float | str] = field(default_factory=dict)


class Strategy(Protocol):
    def suggest(self, state: State) -> PointChoice | Finished:
        """A point that is in the space and neither observed nor pending; Finished when none is left."""

    def recommend(self, state: State) -> Recommendation | None:
        """What to deploy given the history so far; None when nothing is known yet."""


Factory = Callable[..., Strategy]

# name → module and class; modules are imported when first used, so that listing costs nothing.
_BUILT_IN = {
    "auto": ("auto", "Auto"),
    "nephele": ("nephele", "Nephele"),
    "nephele-drop": ("nephele", "NepheleDrop"),
    "lynceus": ("nephele", "Lynceus"),
    "cherrypick": ("improvement", "CherryPick"),
    "ei": ("improvement", "Ei"),
    "ei-c": ("improvement", "EiC"),
    "ei-c-per-cost": ("improvement", "EiCPerCost"),
    "fabulinus": ("entropy", "Fabulinus"),
    "fabolas": ("entropy", "Fabolas"),
    "hyperband": ("hyperband", "Hyperband"),
    "bohb": ("hyperband", "Bohb"),
    "random": ("plain", "Random"),
    "lhs": ("plain", "Latin"),
    "grid": ("plain", "GridSearch"),
}
_ADDED: dict[str, Factory] = {}


def names() -> tuple[str, ...]:
    return tuple(sorted({*_BUILT_IN, *_ADDED}))


def register(name: str, factory: Factory) -> None:
    """Make a strategy available by name; a plugin's name may not hide a built-in one."""
    if name in _BUILT_IN:
        raise InvalidInput(f"{name!r} is a built-in strategy; choose another name")
    _ADDED[name] = factory


def make(name: str, **options: Any) -> Strategy:
    if name in _ADDED:
        factory = _ADDED[name]
    elif name in _BUILT_IN:
        module, attribute = _BUILT_IN[name]
        factory = getattr(import_module(f"easel.tune.strategies.{module}"), attribute)
    else:
        raise InvalidInput(f"there is no strategy {name!r}; there are {', '.join(names())}")
    try:
        return factory(**options)
    except TypeError as error:
        raise InvalidInput(f"strategy {name!r} does not take these options: {error}") from error
