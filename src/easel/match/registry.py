"""Every family of models, found by looking into `easel.match.families`."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType

from easel.errors import InvalidInput
from easel.match import families as package
from easel.match.candidate import Candidate
from easel.match.family import EstimatorFamily, Family, NetworkFamily
from easel.match.kinds import Task, TemplateKind


@cache
def all_families() -> Mapping[str, Family]:
    """Returns the families by name, in the order of their files."""
    found: dict[str, Family] = {}
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda one: one.name):
        for family in import_module(f"{package.__name__}.{module.name}").FAMILIES:
            if family.name in found:
                raise ValueError(f"two families are called {family.name}")
            found[family.name] = family
    return MappingProxyType(found)


def family_of(candidate: Candidate) -> Family:
    """The record of a candidate's family."""
    found = all_families().get(candidate.family)
    if found is None:
        raise InvalidInput(f"there is no family of models called {candidate.family!r} here; update Easel")
    return found


def estimator_family(candidate: Candidate) -> EstimatorFamily:
    found = family_of(candidate)
    assert isinstance(found, EstimatorFamily), f"{found.name} is a network"
    return found


def network_family(candidate: Candidate) -> NetworkFamily:
    found = family_of(candidate)
    assert isinstance(found, NetworkFamily), f"{found.name} is not a network"
    return found


def is_network(candidate: Candidate) -> bool:
    return isinstance(family_of(candidate), NetworkFamily)


@cache
def families_for(kind: TemplateKind, task: Task) -> tuple[Family, ...]:
    """Returns the families whose own kind of program this is, as far as what they need is installed."""
    return tuple(f for f in all_families().values() if (kind, task) in f.fits and f.installed)
