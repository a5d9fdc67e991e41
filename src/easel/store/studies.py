"""Queries on studies, their points and samples. What is no number is kept as text: JSON has no NaN."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import delete, func, insert, select, update

from easel.declare.close import did_you_mean
from easel.declare.page import PageRequest
from easel.declare.study import StudySpec, parse_study
from easel.errors import Conflict, NotFound
from easel.ids import JobId, ProjectId, StudyId, UserId
from easel.records.study import Observation, PointOutcome, StoredStudy, StudyPoint, StudyState
from easel.store.engine import AnyRow, Tx
from easel.store.paging import Collection, Page, fetch
from easel.store.schema.studies import studies, study_points, study_samples
from easel.store.schema.tenants import tenants

STUDIES = Collection(
    {
        "id": studies.c.id,
        "name": studies.c.name,
        "state": studies.c.state,
        "created_at": studies.c.created_at,
    },
    "id",
    "-id",
)
RUNNING = "running"


def add(
    tx: Tx,
    project_id: ProjectId,
    user_id: UserId,
    name: str,
    spec: StudySpec,
    earlier: Sequence[Observation],
    state: StudyState,
) -> StoredStudy:
    taken = select(studies.c.id).where(studies.c.project_id == project_id, studies.c.name == name)
    if tx.execute(taken).first() is not None:
        raise Conflict(f"there is a study {name!r} already: choose another name, or resume that one")
    made = {
        "id": tx.mint("stu"),
        "project_id": project_id,
        "user_id": user_id,
        "name": name,
        "spec": spec.to_dict(),
        "earlier": [_plain_observation(o) for o in earlier],
        "state": state.value,
        "reason": None,
        "revision": 0,
        "created_at": tx.now,
        "changed_at": tx.now,
    }
    tx.execute(insert(studies).values(**made))
    return find(tx, project_id, name)


def find(tx: Tx, project_id: ProjectId, name: str) -> StoredStudy:
    """Returns a study by name or id; one of another project does not exist here."""
    query = select(studies).where(
        studies.c.project_id == project_id, (studies.c.name == name) | (studies.c.id == name)
    )
    row = tx.execute(query).first()
    if row is None:
        known = names_in(tx, project_id)
        raise NotFound(f"no study {name[:80]!r} in this project{did_you_mean(name, known)}")
    return _study(row)


def names_in(tx: Tx, project_id: ProjectId) -> list[str]:
    """Returns the names of a project's studies, for whoever mistyped one."""
    return [row.name for row in tx.execute(select(studies.c.name).where(studies.c.project_id == project_id))]


def by_id(tx: Tx, study_id: str) -> StoredStudy:
    return _study(tx.execute(select(studies).where(studies.c.id == study_id)).one())


def maybe(tx: Tx, study_id: str) -> StoredStudy | None:
    row = tx.execute(select(studies).where(studies.c.id == study_id)).first()
    return None if row is None else _study(row)


def with_unnoted(tx: Tx) -> list[StoredStudy]:
    """Studies with results after which nobody has yet asked for a recommendation."""
    unnoted = select(study_points.c.study_id).where(
        study_points.c.told.is_not(None), study_points.c.spent.is_(None)
    )
    return [_study(row) for row in tx.execute(select(studies).where(studies.c.id.in_(unnoted)))]


def names_of(tx: Tx, ids: Sequence[str]) -> dict[str, str]:
    """Returns the names of these studies, by id; of one that is no longer there, none."""
    query = select(studies.c.id, studies.c.name).where(studies.c.id.in_(sorted(set(ids))))
    return {row.id: row.name for row in tx.execute(query)} if ids else {}


def names(tx: Tx, project_id: ProjectId) -> dict[str, str]:
    rows = tx.execute(select(studies.c.id, studies.c.name).where(studies.c.project_id == project_id))
    return {row.id: row.name for row in rows}


def by_state(tx: Tx, state: StudyState) -> list[StoredStudy]:
    """Returns the studies of every project in these states, oldest first."""
    query = select(studies).where(studies.c.state == state.value).order_by(studies.c.id)
    return [_study(row) for row in tx.execute(query)]


def list_studies(tx: Tx, project_id: ProjectId, page: PageRequest) -> Page[StoredStudy]:
    query = select(studies).where(studies.c.project_id == project_id)
    return fetch(tx, query, STUDIES, page).map(_study)


def touch(tx: Tx, study: StoredStudy, **values: Any) -> bool:
    """Change it if it is still as it was seen; whether it was."""
    done = tx.execute(
        update(studies)
        .where(studies.c.id == study.id, studies.c.revision == study.revision)
        .values(revision=study.revision + 1, changed_at=tx.now, **values)
    )
    return done.rowcount == 1


def remove(tx: Tx, study_id: StudyId) -> None:
    """The study and its points; its jobs and file sets stay in the lake's history."""
    for table in (study_points, study_samples):
        tx.execute(delete(table).where(table.c.study_id == study_id))
    tx.execute(delete(tenants).where(tenants.c.id == study_id))
    tx.execute(delete(studies).where(studies.c.id == study_id))


def points(tx: Tx, study_id: StudyId) -> list[StudyPoint]:
    """Returns the points in the order in which they were started."""
    query = select(study_points).where(study_points.c.study_id == study_id).order_by(study_points.c.number)
    return [_point(row) for row in tx.execute(query)]


def running_points(tx: Tx) -> list[StudyPoint]:
    """Returns running points of all studies whatever their state: a stopped study's last jobs are still to be noted."""
    query = select(study_points).where(study_points.c.state == RUNNING).order_by(study_points.c.seq)
    return [_point(row) for row in tx.execute(query)]


def add_point(
    tx: Tx,
    study_id: StudyId,
    number: int,
    point: Mapping[str, Any],
    job_id: JobId | None,
    why: Mapping[str, Any],
    decision: Mapping[str, Any] | None = None,
) -> None:
    """A point that runs from now on. The same number twice is an error of the database: none can be lost."""
    tx.execute(
        insert(study_points).values(
            study_id=study_id,
            number=number,
            point=dict(point),
            state=RUNNING,
            job_id=job_id,
            values={},
            why=_plain(why),
            decision=None if decision is None else dict(decision),
            started_at=tx.now,
        )
    )


def end_point(
    tx: Tx,
    study_id: StudyId,
    number: int,
    values: Mapping[str, float],
    outcome: PointOutcome,
    reason: str | None,
) -> bool:
    """Ends a point once: a repeated report changes nothing."""
    count = select(func.count()).where(study_points.c.study_id == study_id, study_points.c.told.is_not(None))
    done = tx.execute(
        update(study_points)
        .where(
            study_points.c.study_id == study_id,
            study_points.c.number == number,
            study_points.c.state == RUNNING,
        )
        .values(
            state=outcome.value,
            values=_plain(values),
            reason=reason,
            told=tx.execute(count).scalar_one(),
            ended_at=tx.now,
        )
    )
    return done.rowcount == 1


def note_best(tx: Tx, study_id: StudyId, number: int, spent: float, best: Mapping[str, Any] | None) -> None:
    """What the study had spent and what it recommended after this point."""
    here = (study_points.c.study_id == study_id, study_points.c.number == number)
    kept = None if best is None else dict(best)
    tx.execute(update(study_points).where(*here).values(spent=spent, best=kept))


def sample(tx: Tx, study_id: StudyId, fraction: float) -> str | None:
    """The file set made for this share of the data, if it was made."""
    query = select(study_samples.c.file_set).where(
        study_samples.c.study_id == study_id, study_samples.c.fraction == fraction
    )
    found = tx.execute(query).scalar()
    return None if found is None else str(found)


def add_sample(tx: Tx, study_id: StudyId, fraction: float, file_set: str) -> None:
    tx.execute(insert(study_samples).values(study_id=study_id, fraction=fraction, file_set=file_set))


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: repr(value) if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }


def _plain_observation(o: Observation) -> dict[str, Any]:
    return {
        "point": dict(o.point),
        "values": _plain(o.values),
        "outcome": o.outcome.value,
        "number": o.number,
    }


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items()}


def _study(row: AnyRow) -> StoredStudy:
    earlier = tuple(
        Observation(o["point"], _numbers(o["values"]), PointOutcome(o["outcome"]), o["number"])
        for o in row.earlier
    )
    return StoredStudy(
        row.id,
        row.project_id,
        row.user_id,
        row.name,
        parse_study(row.spec),
        earlier,
        StudyState(row.state),
        row.reason,
        row.revision,
        row.created_at,
        row.changed_at,
    )


def _point(row: AnyRow) -> StudyPoint:
    return StudyPoint(
        row.study_id,
        row.number,
        row.point,
        None if row.state == RUNNING else PointOutcome(row.state),
        row.job_id,
        _numbers(row._mapping["values"]),
        row.why,
        row.decision,
        row.reason,
        row.told,
        row.spent,
        row.best,
        row.started_at,
        row.ended_at,
    )
