"""Queries on profiles, their runs, and the promises made with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import and_, exists, func, insert, not_, or_, select, update

from easel.declare.page import PageRequest
from easel.errors import NotFound
from easel.ids import ProjectId, UserId
from easel.store.engine import AnyRow, Tx
from easel.store.paging import Collection, Page, fetch
from easel.store.schema.jobs import IS_ACTIVE, IS_QUEUED, IS_UNBILLED, job_attempts, jobs
from easel.store.schema.price import bill_lines, profile_runs, profiles, provisions

PROFILES = Collection(
    {
        "id": profiles.c.id,
        "name": profiles.c.name,
        "version": profiles.c.version,
        "state": profiles.c.state,
        "created_at": profiles.c.created_at,
    },
    "id",
    "-id",
)


@dataclass(frozen=True, slots=True)
class Profile:
    """One version. `state` is running, fitted or failed; `runs`, `runtime` and `memory` are plain JSON."""

    id: str
    project_id: ProjectId
    user_id: UserId
    name: str
    version: int
    template: str
    spec: Mapping[str, Any]
    plan: Mapping[str, Any]
    state: str
    reason: str | None
    runs: Sequence[Mapping[str, Any]]
    runtime: Mapping[str, Any] | None
    memory: Mapping[str, Any] | None
    created_at: datetime
    fitted_at: datetime | None


def _profile(row: AnyRow) -> Profile:
    return Profile(**row._mapping)


def add(
    tx: Tx,
    project_id: ProjectId,
    user_id: UserId,
    name: str,
    template: str,
    spec: Mapping[str, Any],
    plan: Mapping[str, Any],
    **fitted: Any,
) -> Profile:
    """The next version of `name`."""
    latest = select(func.max(profiles.c.version)).where(
        profiles.c.project_id == project_id, profiles.c.name == name
    )
    version = (tx.execute(latest).scalar() or 0) + 1
    made = {
        "id": tx.mint("prf"),
        "project_id": project_id,
        "user_id": user_id,
        "name": name,
        "version": version,
        "template": template,
        "spec": dict(spec),
        "plan": dict(plan),
        "state": "running",
        "runs": [],
        "created_at": tx.now,
        **fitted,
    }
    tx.execute(insert(profiles).values(**made))
    return find(tx, project_id, name, version)


def find(tx: Tx, project_id: ProjectId, name: str, version: int | None = None) -> Profile:
    """The latest version, or this one."""
    query = select(profiles).where(profiles.c.project_id == project_id, profiles.c.name == name)
    if version is not None:
        query = query.where(profiles.c.version == version)
    row = tx.execute(query.order_by(profiles.c.version.desc()).limit(1)).one_or_none()
    if row is None:
        raise NotFound(
            f"there is no profile {name[:60]!r} in this project: `easel profiles start` makes one of a command"
        )
    return _profile(row)


def latest_fitted(tx: Tx, project_id: ProjectId, name: str) -> Profile | None:
    """The newest version with a model."""
    query = select(profiles).where(
        profiles.c.project_id == project_id, profiles.c.name == name, profiles.c.state == "fitted"
    )
    row = tx.execute(query.order_by(profiles.c.version.desc()).limit(1)).one_or_none()
    return _profile(row) if row is not None else None


def by_id(tx: Tx, profile_id: str) -> Profile:
    return _profile(tx.execute(select(profiles).where(profiles.c.id == profile_id)).one())


def list_profiles(tx: Tx, project_id: ProjectId, request: PageRequest) -> Page[Profile]:
    query = select(profiles).where(profiles.c.project_id == project_id)
    return fetch(tx, query, PROFILES, request).map(_profile)


def running(tx: Tx) -> list[Profile]:
    query = select(profiles).where(profiles.c.state == "running").order_by(profiles.c.id)
    return [_profile(row) for row in tx.execute(query)]


def settle(tx: Tx, profile_id: str, **values: Any) -> bool:
    """Give a running profile its end; False when somebody else has."""
    query = update(profiles).where(profiles.c.id == profile_id, profiles.c.state == "running")
    return tx.execute(query.values(**values)).rowcount == 1


def add_runs(tx: Tx, profile_id: str, runs: Sequence[tuple[str, Mapping[str, float]]]) -> None:
    """(job, features)."""
    rows = [{"profile_id": profile_id, "job_id": job, "features": dict(f)} for job, f in runs]
    tx.execute(insert(profile_runs), rows)


class RunOfProfile(NamedTuple):
    """The features of a run, and its job's state, reason and usage."""

    job_id: str
    features: dict[str, float]
    state: str
    end_reason: str | None
    usage: Mapping[str, Any] | None


def runs_of(tx: Tx, profile_id: str) -> list[RunOfProfile]:
    """Returns the runs of a profile, in order of submission."""
    query = select(
        profile_runs.c.job_id, profile_runs.c.features, jobs.c.state, jobs.c.end_reason, jobs.c.usage
    ).join(jobs, jobs.c.id == profile_runs.c.job_id)
    found = tx.execute(query.where(profile_runs.c.profile_id == profile_id).order_by(jobs.c.seq))
    return [RunOfProfile._make(row) for row in found]


# Promises. ---------------------------------------------------------------------------------------------------


def add_promise(tx: Tx, values: Mapping[str, Any]) -> None:
    tx.execute(insert(provisions).values(**values))


@dataclass(frozen=True, slots=True)
class Promise:
    """What a job was promised to take and cost, and what it took once that is known."""

    promised_micros: int
    promised_seconds: float
    seconds: float | None


def promise_of(tx: Tx, project_id: ProjectId, job_id: str) -> Promise | None:
    """Returns what a job was promised, or None where it was submitted without a promise."""
    query = select(provisions.c.promised_micros, provisions.c.promised_seconds, provisions.c.seconds)
    row = tx.execute(
        query.where(provisions.c.project_id == project_id, provisions.c.job_id == job_id)
    ).one_or_none()
    return None if row is None else Promise(*row)


_UNBILLED = exists().where(job_attempts.c.job_id == jobs.c.id, IS_UNBILLED)


class PromiseToCompare(NamedTuple):
    """Every column of the table `provisions`, in its order, with the job's state, usage and what it came to."""

    job_id: str
    project_id: ProjectId
    profile_id: str
    features: Mapping[str, float]
    wish: Any
    promised_seconds: float
    low_seconds: float
    high_seconds: float
    promised_micros: int
    seconds: float | None
    micros: int | None
    compared_at: datetime | None
    state: str
    usage: Mapping[str, Any] | None
    came_to: int


def promises_to_compare(tx: Tx, limit: int = 100) -> list[PromiseToCompare]:
    """Returns the promises whose jobs are over and billed, and which nobody has compared."""
    came_to = select(func.coalesce(func.sum(bill_lines.c.micros), 0)).where(
        bill_lines.c.job_id == provisions.c.job_id
    )
    query = (
        select(provisions, jobs.c.state, jobs.c.usage, came_to.scalar_subquery().label("came_to"))
        .join(jobs, jobs.c.id == provisions.c.job_id)
        .where(provisions.c.compared_at.is_(None), jobs.c.ended_at.is_not(None), not_(_UNBILLED))
    )
    return [PromiseToCompare._make(row) for row in tx.execute(query.order_by(jobs.c.seq).limit(limit))]


def keep_comparison(tx: Tx, job_id: str, seconds: float | None, micros: int | None) -> bool:
    """Keeps what a job took; False when somebody else has compared it meanwhile."""
    query = update(provisions).where(provisions.c.job_id == job_id, provisions.c.compared_at.is_(None))
    return tx.execute(query.values(seconds=seconds, micros=micros, compared_at=tx.now)).rowcount == 1


def promised_micros(tx: Tx, job_ids: Sequence[str]) -> dict[str, int]:
    query = select(provisions.c.job_id, provisions.c.promised_micros)
    found = tx.execute(query.where(provisions.c.job_id.in_(job_ids)))
    return {row.job_id: row.promised_micros for row in found}


def waiting_micros(tx: Tx, project_id: ProjectId) -> int:
    """What was promised to jobs of the project that hold no device yet."""
    query = (
        select(func.coalesce(func.sum(provisions.c.promised_micros), 0))
        .join(jobs, jobs.c.id == provisions.c.job_id)
        .where(
            provisions.c.project_id == project_id,
            provisions.c.compared_at.is_(None),
            or_(IS_QUEUED, and_(IS_ACTIVE, jobs.c.held_at.is_(None))),
        )
    )
    return int(tx.execute(query).scalar_one())


def promised_seconds(tx: Tx, job_ids: Sequence[str]) -> dict[str, float]:
    query = select(provisions.c.job_id, provisions.c.promised_seconds)
    found = tx.execute(query.where(provisions.c.job_id.in_(job_ids)))
    return {row.job_id: row.promised_seconds for row in found}
