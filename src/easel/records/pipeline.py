"""Pipelines as the platform knows them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from easel.ids import UserId
from easel.records.job import TERMINAL, Job, JobState


@dataclass(frozen=True, slots=True)
class StepState:
    """A step and the job that runs it, or that ran it earlier when it is `reused`."""

    name: str
    job: Job
    reused: bool
    needs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    id: str
    name: str
    user_id: UserId
    parent_id: str | None
    created_at: datetime
    steps: tuple[StepState, ...]

    @property
    def state(self) -> str:
        """`running` until every step is over; then `finished` if all are, else `failed`."""
        states = {step.job.state for step in self.steps}
        if states - TERMINAL:
            return "running"
        return "finished" if states == {JobState.FINISHED} else "failed"
