"""A study as asked for: the job to tune, the space, the goal, the strategy, and how data is subsampled.

Frozen values without I/O; `to_dict` and `parse_study` are the form in which it is kept and travels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from easel.declare.dimensions import Dimension, DimensionRole
from easel.declare.goal import COST, TIME, BudgetKind, Goal, parse_goal
from easel.declare.job import JobSpec
from easel.declare.resources import Resources
from easel.declare.space import Point, Space, parse_space
from easel.declare.study_limits import FRACTION, MAX_WORKERS
from easel.errors import InvalidInput

JOB: TypeAdapter[JobSpec] = TypeAdapter(JobSpec)
PROVISIONED = ("vcpu", "memory_mb", "gpus")
"""Resource dimensions of these names are what the job is given; others are handed to it and only priced."""


@dataclass(frozen=True, slots=True)
class DataPlan:
    """How the input is subsampled for a point below full data.

    `dimension` names the fidelity that is the share of the data. Files matching a pattern in `keep` (as
    `/test/**`) always come whole. Without a `label` whole files are drawn, alike from every folder; with one, rows
    of tables (CSV, TSV, JSON lines) are, alike from every value of that column.
    """

    dimension: str = FRACTION
    keep: tuple[str, ...] = ()
    label: str | None = None


class WatchedCurve(NamedTuple):
    """A series to watch. A run that has reached `enough` is not hopeless, however well the others do."""

    quantity: str
    larger_is_better: bool
    enough: float | None = None

    def reached(self, values: Iterable[float]) -> bool:
        if self.enough is None:
            return False
        return any(v >= self.enough if self.larger_is_better else v <= self.enough for v in values)


@dataclass(frozen=True, slots=True)
class StudySpec:
    job: JobSpec
    space: Space
    goal: Goal
    strategy: str = "auto"
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    workers: int = 1
    early_stopping: bool = True
    data: DataPlan = field(default_factory=DataPlan)
    slices: str | None = None
    """The fidelity (epochs, steps, rounds) along which a point goes on from the checkpoint that it left lower down."""

    def __post_init__(self) -> None:
        if not 1 <= self.workers <= MAX_WORKERS:
            raise InvalidInput(f"workers must be from 1 to {MAX_WORKERS}, not {self.workers}")
        names = {dimension.name for dimension in self.space.dimensions}
        if self.data.dimension != FRACTION and self.data.dimension not in names:
            raise InvalidInput(f"data.dimension {self.data.dimension!r} is not a dimension of the space")
        if (share := self.share) is not None:
            if share.role is not DimensionRole.FIDELITY:
                raise InvalidInput(f"{share.name!r} is the share of the data: give it `role: fidelity`")
            if not all(0 < float(level) <= 1 for level in share.levels(2)):
                raise InvalidInput(f"{share.name!r} holds shares of the data, each above 0 and at most 1")
        if self.slices is not None:
            self._check_slices(self.slices)
        for dimension in self.space.resources:
            if dimension.name in PROVISIONED:
                self._check_resource(dimension)
        if self.goal.budget.kind is BudgetKind.COUNT and self.goal.budget.amount > 1e9:
            raise InvalidInput(
                "a study needs a budget: how much may it spend? As in `budget: {cost: 2.5}`, "
                "`{time: 3600}` (seconds) or `{count: 50}` (points)"
            )

    def _check_slices(self, name: str) -> None:
        found = next((d for d in self.space.fidelities if d.name == name), None)
        if found is None:
            known = ", ".join(d.name for d in self.space.fidelities) or "none"
            raise InvalidInput(f"slices: {name!r} is not a fidelity of the space; those are: {known}")
        if self.share is not None and self.share.name == name:
            raise InvalidInput(f"slices: {name!r} is the share of the data, which nothing goes on along")
        if any(isinstance(level, str | bool) for level in found.levels(2)):
            raise InvalidInput(f"slices: {name!r} must be a number, such as epochs")

    def _check_resource(self, dimension: Dimension) -> None:
        if dimension.when is not None:
            raise InvalidInput(f"{dimension.name!r} is provisioned for every point: it cannot be conditional")
        for level in dimension.levels(2):
            if isinstance(level, str | bool):
                raise InvalidInput(f"{dimension.name!r} is an amount of resources, not {level!r}")
            provisioned(self.job.resources, {dimension.name: level})

    @property
    def share(self) -> Dimension | None:
        """The dimension that is the share of the data."""
        return next((d for d in self.space.dimensions if d.name == self.data.dimension), None)

    @property
    def curve(self) -> WatchedCurve | None:
        """The reported series by which a hopeless run is stopped: the objective's, or, where that is only known at the
        end (time, cost), a constraint's."""
        if (
            not self.early_stopping or self.goal.others
        ):  # what is poor in one objective may be best in another
            return None
        if self.goal.quantity not in (TIME, COST):
            return WatchedCurve(self.goal.quantity, self.goal.sign > 0)
        limits = [c for c in self.goal.constraints if c.quantity not in (TIME, COST)]
        return WatchedCurve(limits[0].quantity, limits[0].at_least, limits[0].bound) if limits else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "job": JOB.dump_python(self.job, mode="json"),
            "space": self.space.to_dict(),
            "goal": self.goal.to_dict(),
            "strategy": self.strategy,
            "options": dict(self.options),
            "seed": self.seed,
            "workers": self.workers,
            "early_stopping": self.early_stopping,
            "slices": self.slices,
            "data": {
                "dimension": self.data.dimension,
                "keep": list(self.data.keep),
                "label": self.data.label,
            },
        }


def parse_study(plain: Mapping[str, Any]) -> StudySpec:
    """What `to_dict` gave."""
    data = plain["data"]
    return StudySpec(
        job=JOB.validate_python(plain["job"]),
        space=parse_space(plain["space"]),
        goal=parse_goal(plain["goal"]),
        strategy=plain["strategy"],
        options=dict(plain["options"]),
        seed=plain["seed"],
        workers=plain["workers"],
        early_stopping=plain["early_stopping"],
        data=DataPlan(data["dimension"], tuple(data["keep"]), data["label"]),
        slices=plain.get("slices"),
    )


def provisioned(base: Resources, point: Point) -> Resources:
    """What a point's job gets: the job's own resources, changed where the point names others."""
    return Resources(
        vcpu=float(point.get("vcpu", base.vcpu)),
        memory_mb=round(float(point.get("memory_mb", base.memory_mb))),
        gpus=float(point.get("gpus", base.gpus)),
    )
