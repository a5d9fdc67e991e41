"""Facts about a study: what was suggested, what was measured, what is recommended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from easel.declare.study import StudySpec
from easel.ids import JobId, ProjectId, StudyId, UserId

Point = Mapping[str, bool | int | float | str]


class PointOutcome(StrEnum):
    COMPLETED = "completed"
    # The trial broke: its point is not tried again, its spending counts.
    FAILED = "failed"
    # Cut short by the budget or by its own poor curve: what it measured so far counts, as of a poor trial.
    STOPPED = "stopped"


@dataclass(frozen=True)
class Observation:
    """One finished trial. `values` may lack quantities or hold NaN: those were not measured."""

    point: Point
    values: Mapping[str, float]
    outcome: PointOutcome = PointOutcome.COMPLETED
    number: int | None = None


@dataclass(frozen=True)
class Suggestion:
    """Run this point next. `why` records the decision: predictions, acquisition value, the runner-up."""

    point: Point
    number: int
    # Stop the run once it has used this much of the budget's unit; None where nothing limits it.
    limit: float | None = None
    why: Mapping[str, float | str] = field(default_factory=dict)


@dataclass(frozen=True)
class Finished:
    """There is nothing to run, and why."""

    reason: str


@dataclass(frozen=True)
class Estimate:
    """A prediction in the quantity's own unit: the median, and the central 90 %."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Recommendation:
    """The point to deploy. `observed` holds its own measurements where it was tried at that fidelity."""

    point: Point
    predicted: Mapping[str, Estimate] = field(default_factory=dict)
    probability: float | None = None
    observed: Mapping[str, float] | None = None


class StudyState(StrEnum):
    CREATED = "created"
    RUNNING = "running"
    # By a person; what ran was ended, and it may be resumed.
    STOPPED = "stopped"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class StoredStudy:
    """A study on the server. `revision` grows with each change of its state or points."""

    id: StudyId
    project_id: ProjectId
    user_id: UserId
    name: str
    spec: StudySpec
    earlier: tuple[Observation, ...]
    state: StudyState
    reason: str | None
    revision: int
    created_at: datetime
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class StudyPoint:
    """One point and what came of it. `outcome` is None while it runs; `told` gives the order of results.

    `spent` and `best` are what the study had used up and what it recommended once this point was told.
    """

    study_id: StudyId
    number: int
    point: Point
    outcome: PointOutcome | None
    job_id: JobId | None
    values: Mapping[str, float]
    why: Mapping[str, float | str]
    decision: Mapping[str, Any] | None
    reason: str | None
    told: int | None
    spent: float | None
    best: Mapping[str, Any] | None
    started_at: datetime
    ended_at: datetime | None

    @property
    def observation(self) -> Observation:
        assert self.outcome is not None
        return Observation(self.point, self.values, self.outcome, self.number)
