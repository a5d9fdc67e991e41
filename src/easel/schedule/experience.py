"""Experience as a value: how candidates did, how long they took and what the data were like, on public data.

Reading and writing the file is `flow/experience/`'s. `from_json` skips what it does not understand, so that a file of
an older or newer version is less experience and no error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from easel.optimise.arrays import Array
from easel.schedule.table import ScoreTable

VERSION = 1


@dataclass(frozen=True)
class DataProperties:
    """What is known of a set of examples before any model is trained.

    `missing` is the share of empty cells, `balance` the entropy of the classes over that of equal ones (1 for
    numbers), `correlation` the mean absolute correlation between columns, `categorical` the share of columns that
    hold categories.
    """

    rows: float
    columns: float
    classes: float = 0.0
    missing: float = 0.0
    balance: float = 1.0
    correlation: float = 0.0
    categorical: float = 0.0

    def vector(self) -> Array:
        """`(d,)`: counts as logarithms, shares as they are; unknown ones are zero."""
        counts = [np.log(max(v, 1.0)) for v in (self.rows, self.columns, self.classes)]
        shares = [self.missing, self.balance, self.correlation, self.categorical]
        return np.asarray(np.nan_to_num(np.array([*counts, *shares]), posinf=0.0, neginf=0.0))


@dataclass(frozen=True)
class Outcome:
    """One candidate on one set: `score` in [0, 1] (NaN: it failed) and the processor seconds it took."""

    score: float
    seconds: float


@dataclass(frozen=True, eq=False)
class KnownSet:
    """One public set of examples: sets of one `group` are cuts of the same data and are left out together."""

    name: str
    group: str
    template: str
    source: str
    properties: DataProperties
    outcomes: Mapping[str, Outcome] = field(default_factory=lambda: MappingProxyType({}))

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "group": self.group,
            "template": self.template,
            "source": self.source,
            "properties": {f.name: _short(getattr(self.properties, f.name)) for f in fields(DataProperties)},
            "outcomes": {
                name: [None if np.isnan(o.score) else _short(o.score), _short(o.seconds)]
                for name, o in sorted(self.outcomes.items())
            },
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        known = {f.name for f in fields(DataProperties)}
        properties = {key: float(v) for key, v in raw["properties"].items() if key in known}
        outcomes = {
            str(name): Outcome(np.nan if score is None else float(score), float(seconds))
            for name, (score, seconds) in raw["outcomes"].items()
        }
        return cls(
            str(raw["name"]),
            str(raw["group"]),
            str(raw["template"]),
            str(raw["source"]),
            DataProperties(**properties),
            MappingProxyType(outcomes),
        )


@dataclass(frozen=True)
class Experience:
    """Everything learned on public data."""

    sets: tuple[KnownSet, ...] = ()

    def of(self, template: str) -> Experience:
        """The sets on which candidates of `template` were run."""
        return Experience(tuple(one for one in self.sets if one.template == template))

    def without(self, groups: Iterable[str]) -> Experience:
        """All but the sets of these groups."""
        gone = frozenset(groups)
        return Experience(tuple(one for one in self.sets if one.group not in gone))

    def table(self, candidates: Sequence[str]) -> ScoreTable:
        """Scores and seconds of `candidates`, one row for each set; NaN where one was not run."""
        shape = (len(self.sets), len(candidates))
        scores, seconds = np.full(shape, np.nan), np.full(shape, np.nan)
        for i, one in enumerate(self.sets):
            for k, name in enumerate(candidates):
                if name in one.outcomes:
                    scores[i, k], seconds[i, k] = one.outcomes[name].score, one.outcomes[name].seconds
        return ScoreTable(tuple(one.name for one in self.sets), tuple(candidates), scores, seconds)

    def properties(self) -> Array:
        """`(n, d)`: a row for each set."""
        if not self.sets:
            return np.empty((0, len(DataProperties(1, 1).vector())))
        return np.array([one.properties.vector() for one in self.sets])

    def to_json(self) -> dict[str, Any]:
        return {"version": VERSION, "sets": [one.to_json() for one in self.sets]}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        found = []
        for one in raw.get("sets", ()):
            try:
                found.append(KnownSet.from_json(one))
            except (KeyError, TypeError, ValueError, AttributeError):
                continue
        return cls(tuple(found))


def merged(ours: Experience, theirs: Experience) -> Experience:
    """Returns both together; of a candidate that both ran on a set, ours counts."""
    sets = {one.name: one for one in ours.sets}
    for one in theirs.sets:
        known = sets.get(one.name, one)
        sets[one.name] = replace(known, outcomes=MappingProxyType({**one.outcomes, **known.outcomes}))
    return Experience(tuple(sets.values()))


def _short(value: float) -> float:
    return float(f"{value:.5g}")
