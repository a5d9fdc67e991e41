"""ConfigSpace: its hyperparameters, conditions and forbidden clauses to our space and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ConfigSpace as CS  # noqa: N817 - the library's own abbreviation

from easel.declare.dimensions import Categorical, Dimension, Float, Integer, Ordinal, Value, When
from easel.declare.space import Forbidden, Space
from easel.errors import InvalidInput


def from_configspace(source: CS.ConfigurationSpace) -> Space:
    """Conditions must be `equals` or `in` on one parent; forbidden clauses `equals`, `in` and their conjunctions."""
    when: dict[str, When] = {}
    for condition in source.conditions:
        child = condition.child.name
        if child in when or not isinstance(condition, CS.EqualsCondition | CS.InCondition):
            raise InvalidInput(f"the condition on {child!r} is more than one parent's value; simplify it")
        when[child] = When(condition.parent.name, tuple(_plain(v) for v in _condition_values(condition)))
    names = [h.name for h in source.values()]
    ordered = sorted(names, key=lambda name: (_depth(name, when), names.index(name)))
    dimensions = tuple(_dimension(source[name], when.get(name)) for name in ordered)
    return Space(dimensions, tuple(Forbidden(dict(_clause(f))) for f in source.forbidden_clauses))


def _depth(name: str, when: dict[str, When]) -> int:
    return 0 if name not in when else 1 + _depth(when[name].dimension, when)


def _condition_values(condition: Any) -> list[Any]:
    return list(condition.values) if isinstance(condition, CS.InCondition) else [condition.value]


def _dimension(h: Any, when: When | None) -> Dimension:
    if isinstance(h, CS.Constant):
        return Categorical(h.name, (_plain(h.value),), when=when)
    if isinstance(h, CS.UniformFloatHyperparameter):
        return Float(h.name, float(h.lower), float(h.upper), log=bool(h.log), when=when)
    if isinstance(h, CS.UniformIntegerHyperparameter):
        return Integer(h.name, int(h.lower), int(h.upper), log=bool(h.log), when=when)
    if isinstance(h, CS.CategoricalHyperparameter):
        return Categorical(h.name, tuple(_plain(v) for v in h.choices), when=when)
    if isinstance(h, CS.OrdinalHyperparameter):
        return Ordinal(h.name, tuple(_plain(v) for v in h.sequence), when=when)
    raise InvalidInput(f"{h.name!r}: {type(h).__name__} has no counterpart here")


def _plain(value: Any) -> Value:
    """NumPy scalars as Python's own."""
    found: Value = value.item() if hasattr(value, "item") else value
    return found


def _clause(clause: Any) -> Iterator[tuple[str, tuple[Value, ...]]]:
    if isinstance(clause, CS.ForbiddenAndConjunction):
        for part in clause.components:
            yield from _clause(part)
    elif isinstance(clause, CS.ForbiddenEqualsClause):
        yield clause.hyperparameter.name, (_plain(clause.value),)
    elif isinstance(clause, CS.ForbiddenInClause):
        yield clause.hyperparameter.name, tuple(_plain(v) for v in clause.values)
    else:
        raise InvalidInput(f"the forbidden clause {clause} has no counterpart here")


def to_configspace(space: Space, seed: int | None = None) -> CS.ConfigurationSpace:
    """Roles and rates have no counterpart and are left behind."""
    target = CS.ConfigurationSpace(seed=seed)
    made: dict[str, Any] = {}
    for d in space.dimensions:
        made[d.name] = _hyperparameter(d)
        target.add(made[d.name])
    for d in space.dimensions:
        if d.when is not None:
            target.add(CS.InCondition(made[d.name], made[d.when.dimension], list(d.when.values)))
    for rule in space.forbidden:
        clauses = [CS.ForbiddenInClause(made[name], list(values)) for name, values in rule.values.items()]
        target.add(clauses[0] if len(clauses) == 1 else CS.ForbiddenAndConjunction(*clauses))
    return target


def _hyperparameter(d: Dimension) -> Any:
    if d.count == 1:
        return CS.Constant(d.name, d.levels(1)[0])
    if isinstance(d, Float):
        return CS.UniformFloatHyperparameter(d.name, d.low, d.high, log=d.log)
    if isinstance(d, Integer) and d.step == 1:
        return CS.UniformIntegerHyperparameter(d.name, d.low, d.high, log=d.log)
    if isinstance(d, Categorical):
        return CS.CategoricalHyperparameter(d.name, list(d.values))
    return CS.OrdinalHyperparameter(d.name, list(d.levels(2)))
