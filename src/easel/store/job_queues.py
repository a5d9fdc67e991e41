"""Queries on queues: who waits, who is active, and what admins set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import bindparam, exists, func, literal, or_, select, update

from easel.ids import JobId, ProjectId, UserId
from easel.records.queue import Line, Owner, QueueState
from easel.store.engine import Tx
from easel.store.schema.identity import users
from easel.store.schema.jobs import IS_ACTIVE, IS_QUEUED, job_queues, jobs
from easel.store.upsert import insert_or


@dataclass(frozen=True, slots=True)
class QueueLimit:
    """Why a queue lets nothing through: it is paused, or `limit` of its jobs are active."""

    paused: bool
    limit: int


PROJECT = UserId("")
"""Stands for the project's own settings, which hold for users without their own."""


LONGEST_WAIT = timedelta(minutes=10)
"""More than any job waits before it is tried again."""
MOST_PASSED = 200
"""So many jobs of a queue that cannot be placed are passed over to find some that can."""


def lines(
    tx: Tx, default_limit: int, at_most: int, able: Placeable | None = None, kind: str | None = None
) -> list[Line]:
    """Every queue in which something waits, with as many of its first jobs as it may launch, up to `at_most`.

    Jobs that are not `able` to be placed are passed over: they wait in the queue and hold no active slot. With a
    `kind` only jobs of that kind are seen.
    """
    ready = exists().where(
        IS_QUEUED,
        *(() if kind is None else (jobs.c.kind == kind,)),
        jobs.c.project_id == job_queues.c.project_id,
        jobs.c.user_id == job_queues.c.user_id,
        jobs.c.blocked == 0,
    )
    # One look into the index for each owner, however many jobs wait.
    waiting = tx.execute(select(job_queues.c.project_id, job_queues.c.user_id).where(ready)).all()
    if not waiting:
        return []
    busy = _active(tx)
    settings = _settings(tx)
    found: list[Line] = []
    for project_id, user_id in waiting:
        owner = (ProjectId(project_id), UserId(user_id))
        limit, paused, served = _resolved(settings, owner, default_limit)
        line = Line(owner, (), busy.get(owner, 0), limit, served, paused)
        if line.room > 0:
            heads = _heads(tx, owner, min(line.room, at_most), able, kind)
            found.append(Line(owner, heads, line.active, limit, served, paused))
    return found


def blocked(tx: Tx, owners: Iterable[Owner], default_limit: int) -> dict[Owner, QueueLimit]:
    """Returns those of these owners whose queues let nothing through now."""
    busy, settings = _active(tx), _settings(tx)
    found: dict[Owner, QueueLimit] = {}
    for owner in owners:
        limit, paused, _ = _resolved(settings, owner, default_limit)
        if paused or busy.get(owner, 0) >= limit:
            found[owner] = QueueLimit(paused, limit)
    return found


def settings_of(tx: Tx, owners: Iterable[Owner], default_limit: int) -> list[Line]:
    """The queues of these owners with their limits and turns, whether or not anything waits."""
    busy, settings = _active(tx), _settings(tx)
    found = []
    for owner in sorted(owners):
        limit, paused, served = _resolved(settings, owner, default_limit)
        found.append(Line(owner, (), busy.get(owner, 0), limit, served, paused))
    return found


def launching_count(tx: Tx) -> int:
    """Jobs that executors were given and no device has begun."""
    return int(tx.execute(select(func.count()).where(IS_ACTIVE, jobs.c.state == "launching")).scalar_one())


def _active(tx: Tx) -> dict[Owner, int]:
    query = (
        select(jobs.c.project_id, jobs.c.user_id, func.count())
        .where(IS_ACTIVE)
        .group_by(jobs.c.project_id, jobs.c.user_id)
    )
    return {(ProjectId(project), UserId(user)): count for project, user, count in tx.execute(query)}


Placeable = Callable[[Owner, Mapping[str, Any]], bool]
"""Whether the pool could hold a job of this owner with this stored spec."""


def _heads(
    tx: Tx, owner: Owner, count: int, able: Placeable | None = None, kind: str | None = None
) -> Sequence[JobId]:
    """The first jobs of a queue, those passed over that could not be placed now."""
    query = (
        select(jobs.c.id, jobs.c.spec if able is not None else literal(None).label("spec"))
        .where(
            IS_QUEUED,
            jobs.c.project_id == owner[0],
            jobs.c.user_id == owner[1],
            jobs.c.blocked == 0,
            *(() if kind is None else (jobs.c.kind == kind,)),
            or_(
                jobs.c.not_before.is_(None),
                jobs.c.not_before <= tx.now,
                # Nobody is made to wait so long: the clock was set back meanwhile.
                jobs.c.not_before > tx.now + LONGEST_WAIT,
            ),
        )
        .order_by(jobs.c.rank, jobs.c.seq)
    )
    if able is None:
        return [JobId(row.id) for row in tx.execute(query.limit(count))]
    found: list[JobId] = []
    for row in tx.execute(query.limit(count + MOST_PASSED)):
        if able(owner, row.spec):
            found.append(JobId(row.id))
        if len(found) == count:
            break
    return found


_SETTINGS = select(job_queues)
_OF_PROJECT = _SETTINGS.where(job_queues.c.project_id == bindparam("of_project"))


def _settings(tx: Tx, project_id: ProjectId | None = None) -> dict[Owner, Any]:
    asked = _SETTINGS if project_id is None else _OF_PROJECT
    found = tx.execute(asked, None if project_id is None else {"of_project": project_id})
    return {(ProjectId(row.project_id), UserId(row.user_id)): row for row in found}


def _resolved(settings: Mapping[Owner, Any], owner: Owner, default: int) -> tuple[int, bool, int]:
    """(limit, paused, served): the user's own setting, else the project's, else the platform's."""
    own, project = settings.get(owner), settings.get((owner[0], PROJECT))
    limit = next((row.max_active for row in (own, project) if row and row.max_active is not None), default)
    paused = bool((own and own.paused) or (project and project.paused))
    return int(limit), paused, int(own.served) if own else 0


_QUEUE_IS_THERE = select(job_queues.c.served).where(
    job_queues.c.project_id == bindparam("of_project"), job_queues.c.user_id == bindparam("of_user")
)


def open_queue(tx: Tx, project_id: ProjectId, user_id: UserId) -> None:
    """Opens a queue for whoever submits for the first time."""
    if tx.execute(_QUEUE_IS_THERE, {"of_project": project_id, "of_user": user_id}).first() is not None:
        return
    made = insert_or(tx, job_queues).values(project_id=project_id, user_id=user_id, paused=False, served=0)
    tx.execute(made.on_conflict_do_nothing())


def remember_served(tx: Tx, served: Mapping[Owner, int]) -> None:
    if not served:
        return
    made = insert_or(tx, job_queues)
    made = made.on_conflict_do_update(
        index_elements=["project_id", "user_id"], set_={"served": made.excluded.served}
    )
    tx.execute(
        made,
        [
            {"project_id": project, "user_id": user, "paused": False, "served": turn}
            for (project, user), turn in sorted(served.items())
        ],
    )


def last_turn(tx: Tx) -> int:
    return int(tx.execute(select(func.coalesce(func.max(job_queues.c.served), 0))).scalar_one())


def set_queue(
    tx: Tx, project_id: ProjectId, user_id: UserId, *, max_active: int | None, paused: bool
) -> None:
    made = insert_or(tx, job_queues).values(
        project_id=project_id, user_id=user_id, max_active=max_active, paused=paused, served=0
    )
    tx.execute(
        made.on_conflict_do_update(
            index_elements=["project_id", "user_id"],
            set_={"max_active": made.excluded.max_active, "paused": made.excluded.paused},
        )
    )


def get_queue(tx: Tx, project_id: ProjectId, user_id: UserId) -> tuple[int | None, bool]:
    """(max_active, paused) as set for this user alone, or for the project with PROJECT."""
    row = _settings(tx, project_id).get((project_id, user_id))
    return (row.max_active, bool(row.paused)) if row else (None, False)


_COUNTS = (
    select(jobs.c.user_id, users.c.name, IS_QUEUED, func.count())
    .join(users, users.c.id == jobs.c.user_id)
    .where(jobs.c.project_id == bindparam("of_project"), or_(IS_QUEUED, IS_ACTIVE))
    .group_by(jobs.c.user_id, users.c.name, IS_QUEUED)
)


def states(tx: Tx, project_id: ProjectId, default_limit: int) -> list[QueueState]:
    """Every queue of a project in which something waits or runs."""
    counts: dict[tuple[UserId, str], dict[bool, int]] = {}
    for user_id, name, queued, count in tx.execute(_COUNTS, {"of_project": project_id}):
        counts.setdefault((UserId(user_id), name), {})[bool(queued)] = count
    settings = _settings(tx, project_id)
    found: list[QueueState] = []
    for (user_id, name), count in sorted(counts.items()):
        limit, paused, _ = _resolved(settings, (project_id, user_id), default_limit)
        found.append(QueueState(user_id, name, count.get(True, 0), count.get(False, 0), limit, paused))
    return found


_QUEUED_COUNT = select(func.count()).where(
    IS_QUEUED, jobs.c.project_id == bindparam("of_project"), jobs.c.user_id == bindparam("of_user")
)


def queued_count(tx: Tx, project_id: ProjectId, user_id: UserId) -> int:
    return int(tx.execute(_QUEUED_COUNT, {"of_project": project_id, "of_user": user_id}).scalar_one())


def queued_ids(tx: Tx, project_id: ProjectId, user_id: UserId, limit: int = 10_000) -> list[JobId]:
    """A user's queue in its order."""
    query = select(jobs.c.id).where(IS_QUEUED, jobs.c.project_id == project_id, jobs.c.user_id == user_id)
    return [JobId(row.id) for row in tx.execute(query.order_by(jobs.c.rank, jobs.c.seq).limit(limit))]


def lowest_rank(tx: Tx, project_id: ProjectId, user_id: UserId) -> int:
    query = select(func.coalesce(func.min(jobs.c.rank), 0)).where(
        IS_QUEUED, jobs.c.project_id == project_id, jobs.c.user_id == user_id
    )
    return int(tx.execute(query).scalar_one())


def set_ranks(tx: Tx, ranks: Mapping[JobId, int]) -> None:
    if ranks:
        statement = update(jobs).where(jobs.c.id == bindparam("job")).values(rank=bindparam("new_rank"))
        tx.execute(statement, [{"job": job, "new_rank": rank} for job, rank in sorted(ranks.items())])
