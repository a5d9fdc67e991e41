"""What stands between a job and its queue, asked in one statement: usually nothing does, and nothing more is asked."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import BindParameter, bindparam, exists, func, select

from easel.ids import ProjectId, UserId
from easel.store.engine import Tx
from easel.store.schema.jobs import job_queues, jobs
from easel.store.schema.lake import grants
from easel.store.schema.operate import quotas
from easel.store.schema.price import budgets


@dataclass(frozen=True, slots=True)
class SubmissionLimits:
    """Which limits a project has set at all, whether the user has a queue in it, and at least how many jobs there ever
    were in all projects."""

    budget: bool
    quotas: bool
    grants: bool
    queue: bool
    ever: int


_OF_PROJECT: BindParameter[str] = bindparam("of_project")
_LIMITS = select(
    exists().where(budgets.c.project_id == _OF_PROJECT),
    exists().where(quotas.c.project_id == _OF_PROJECT),
    exists().where(grants.c.project_id == _OF_PROJECT),
    exists().where(job_queues.c.project_id == _OF_PROJECT, job_queues.c.user_id == bindparam("of_user")),
    select(func.coalesce(func.max(jobs.c.seq), 0)).scalar_subquery(),
)


def limits(tx: Tx, project_id: ProjectId, user_id: UserId) -> SubmissionLimits:
    row = tx.execute(_LIMITS, {"of_project": project_id, "of_user": user_id}).one()
    budget, any_quotas, any_grants, queue, ever = row
    return SubmissionLimits(bool(budget), bool(any_quotas), bool(any_grants), bool(queue), int(ever))
