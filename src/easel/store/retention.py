"""Queries on what is old, and the rules by which it is given up."""

from __future__ import annotations

import contextlib
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, delete, exists, func, insert, or_, select, update

from easel.ids import ProjectId, UserId
from easel.records.retention import Leaving, Retention, RetentionRule
from easel.store.engine import Tx
from easel.store.schema.events import events
from easel.store.schema.jobs import job_logs, jobs
from easel.store.schema.lake import artifacts, job_reads, tags
from easel.store.schema.operate import retention_rules
from easel.store.schema.tracking import registered_models

_EXAMPLES = 20


def _old_jobs(project_id: ProjectId, before: datetime, tag: str) -> ColumnElement[bool]:
    """Jobs that ended before a moment, and have a tag where one is asked for."""
    asked = (jobs.c.project_id == project_id) & (jobs.c.ended_at < before)
    if not tag:
        return asked
    key, equals, value = tag.partition("=")
    tagged = (tags.c.artifact_id == jobs.c.artifact_id) & (tags.c.key == key)
    if equals:
        same = tags.c.text == value
        with contextlib.suppress(ValueError):
            same = or_(same, tags.c.number == float(value))
        tagged &= same
    return asked & exists().where(tagged)


def old_logs(tx: Tx, project_id: ProjectId, before: datetime, tag: str) -> tuple[int, int, list[str]]:
    """How many jobs have logs that are old, how many bytes those take, and some of the jobs."""
    here = _old_jobs(project_id, before, tag)
    joined = select(
        func.count(jobs.c.id.distinct()), func.coalesce(func.sum(func.length(job_logs.c.data)), 0)
    )
    count, size = tx.execute(joined.join(jobs, jobs.c.id == job_logs.c.job_id).where(here)).one()
    some = select(jobs.c.id).join(job_logs, jobs.c.id == job_logs.c.job_id).where(here).distinct()
    return int(count), int(size), list(tx.execute(some.limit(_EXAMPLES)).scalars())


def drop_logs(tx: Tx, project_id: ProjectId, before: datetime, tag: str) -> None:
    """Remove the lines; jobs go on saying how many there were."""
    old = select(jobs.c.id).where(_old_jobs(project_id, before, tag))
    tx.execute(delete(job_logs).where(job_logs.c.job_id.in_(old)))


def _old_events(project_id: ProjectId, before: datetime, tag: str) -> ColumnElement[bool]:
    here = (events.c.project_id == project_id) & (events.c.at < before)
    if tag:
        here &= events.c.subject.in_(select(jobs.c.id).where(_old_jobs(project_id, before, tag)))
    return here


def old_events(tx: Tx, project_id: ProjectId, before: datetime, tag: str) -> tuple[int, list[str]]:
    here = _old_events(project_id, before, tag)
    count = tx.execute(select(func.count()).select_from(events).where(here)).scalar_one()
    kinds = select(events.c.kind).where(here).group_by(events.c.kind).order_by(func.count().desc())
    return int(count), list(tx.execute(kinds.limit(_EXAMPLES)).scalars())


def drop_events(tx: Tx, project_id: ProjectId, before: datetime, tag: str) -> None:
    tx.execute(delete(events).where(_old_events(project_id, before, tag)))


def old_outputs(tx: Tx, project_id: ProjectId, before: datetime, tag: str) -> list[tuple[str, int]]:
    """Output sets of old jobs with their bytes. Those that a job reads, models of apps and registered models stay."""
    read = exists().where(job_reads.c.file_set == artifacts.c.id)
    registered = exists().where(
        registered_models.c.project_id == project_id, registered_models.c.file_set == artifacts.c.name
    )
    query = (
        select(jobs.c.output_set, artifacts.c.size)
        .join(artifacts, artifacts.c.id == jobs.c.output_id)
        .where(
            _old_jobs(project_id, before, tag),
            jobs.c.kind != "trial",
            artifacts.c.dropped_at.is_(None),
            ~read,
            ~registered,
        )
    )
    return [(row.output_set, int(row.size)) for row in tx.execute(query.order_by(jobs.c.seq))]


def add_rule(tx: Tx, project_id: ProjectId, user_id: UserId, rule: Retention) -> RetentionRule:
    made = RetentionRule(tx.mint("ret"), project_id, rule, user_id, tx.now, None)
    tx.execute(
        insert(retention_rules).values(
            id=made.id,
            project_id=project_id,
            what=rule.what.value,
            older_than_days=rule.older_than / timedelta(days=1),
            tag=rule.tag,
            created_by=user_id,
            created_at=tx.now,
        )
    )
    return made


def rules(tx: Tx, project_id: ProjectId | None = None) -> list[RetentionRule]:
    """Returns the rules of a project, or all."""
    query = select(retention_rules).order_by(retention_rules.c.created_at, retention_rules.c.id)
    if project_id is not None:
        query = query.where(retention_rules.c.project_id == project_id)
    return [
        RetentionRule(
            row.id,
            ProjectId(row.project_id),
            Retention(Leaving(row.what), timedelta(days=row.older_than_days), row.tag),
            UserId(row.created_by),
            row.created_at,
            row.applied_at,
        )
        for row in tx.execute(query)
    ]


def applied(tx: Tx, rule_id: str) -> None:
    tx.execute(update(retention_rules).where(retention_rules.c.id == rule_id).values(applied_at=tx.now))


def remove_rule(tx: Tx, project_id: ProjectId, rule_id: str) -> bool:
    here = (retention_rules.c.project_id == project_id) & (retention_rules.c.id == rule_id)
    return bool(tx.execute(delete(retention_rules).where(here)).rowcount)
