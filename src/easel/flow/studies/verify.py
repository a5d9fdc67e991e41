"""Run what a study recommends, so that what is predicted becomes measured."""

from __future__ import annotations

from dataclasses import dataclass

from easel.errors import Conflict
from easel.flow.jobs.submit import submit_job
from easel.flow.studies.advance import recommend, tuner_of
from easel.flow.studies.declare import may_change
from easel.flow.studies.point import job_for
from easel.records.identity import Caller
from easel.records.study import Point, StoredStudy, StudyPoint
from easel.store import studies
from easel.store.engine import Tx


@dataclass(frozen=True)
class PointToVerify:
    """A study as it stood, and the point that it recommends."""

    study: StoredStudy
    number: int
    point: Point


def to_verify(tx: Tx, caller: Caller, name: str) -> PointToVerify:
    """What there is to verify; the models take their time, so this is asked outside any change."""
    study = may_change(tx, caller, name)
    points = studies.points(tx, study.id)
    best = recommend(tuner_of(study, [p for p in points if p.told is not None]))
    if best is None:
        raise Conflict(f"study {name} recommends nothing yet: there is nothing to verify")
    if best["observed"] is not None:
        raise Conflict(
            f"what study {name} recommends was measured already: `easel studies best` shows its job"
        )
    return PointToVerify(study, max((p.number for p in points), default=-1) + 1, best["point"])


def start_verifying(tx: Tx, caller: Caller, wanted: PointToVerify) -> StudyPoint:
    """One more point of the study, on all of the data; its spending counts as any other's."""
    study, number = wanted.study, wanted.number
    if not studies.touch(tx, study):
        raise Conflict(f"study {study.name} was changed at the same moment: try again")
    job = submit_job(tx, caller, job_for(study.spec, study.name, number, wanted.point, None, None))
    studies.add_point(tx, study.id, number, wanted.point, job.id, {"reason": "to verify the recommendation"})
    body = {"name": study.name, "number": number, "job": job.id}
    tx.emit("study.point_started", study.id, project_id=study.project_id, actor=caller.user.id, body=body)
    return next(p for p in studies.points(tx, study.id) if p.number == number)
