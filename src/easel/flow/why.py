"""Why something runs or waits: for an app, a study or a job, from the pool as it stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np

from easel.flow.jobs.admission import QueueAdmission
from easel.flow.jobs.expected import ExpectedTimes, expected_times
from easel.flow.jobs.launch import UNKNOWN_JOB_S
from easel.flow.jobs.promises import correction
from easel.flow.jobs.shares import better_claim
from easel.flow.jobs.waiting import no_place, why_waiting
from easel.flow.prices import book_now
from easel.flow.words import standing as words
from easel.flow.words.reasons import slice_until
from easel.ids import JobId
from easel.records.app import App, AppTrial
from easel.records.decision import StartTrial
from easel.records.job import TERMINAL, Job, JobState
from easel.records.queue import Owner
from easel.records.standing import Account, Obstacle, Standing
from easel.records.study import StoredStudy, StudyPoint, StudyState
from easel.run.share import HALF_LIFE_S
from easel.schedule.state import PoolDevice, Tenant
from easel.store import devices, identity, job_attempts, job_needs, job_placements, job_queues, jobs, tenants
from easel.store.engine import Tx
from easel.tenancy.pool_view import PoolView

ANY = PoolDevice("any")


def of_app(
    tx: Tx,
    pool: PoolView | None,
    app: App,
    lacks: str | None,
    trials: Sequence[AppTrial],
    names: Mapping[str, str],
    first: str | None = None,
) -> Account:
    """`names` are those of the project's tenants, by id; `first` is the tenant that the pool would serve next."""
    running = [trial for trial in trials if not trial.ended]
    since = max((t.ended_at for t in trials if t.ended_at is not None), default=app.created_at)
    seconds = [float(t.decision["reasons"]["cost"]) for t in running if "reasons" in t.decision]
    work = _Underway(
        [t.job_id for t in running],
        [t.name for t in running],
        seconds,
        [t.started_at for t in running],
        any((slice_until(t.decision) or 1.0) < 1.0 for t in running),
    )
    if lacks is not None and not running:
        return _blocked("app", app.name, Obstacle(Standing.LACKS_EXAMPLES, facts={"lacks": lacks}), None, tx)
    return _of_tenant(tx, pool, "app", app.id, app.name, work, since, names, first)


def of_study(
    tx: Tx,
    pool: PoolView | None,
    study: StoredStudy,
    points: Sequence[StudyPoint],
    names: Mapping[str, str],
    first: str | None = None,
) -> Account:
    if study.state is not StudyState.RUNNING:
        status = {
            StudyState.CREATED: Standing.NOT_STARTED,
            StudyState.STOPPED: Standing.STOPPED,
            StudyState.FINISHED: Standing.FINISHED,
        }[study.state]
        told = words.of_study(study.state.value, study.name, study.reason, study.changed_at, tx.now)
        return Account(status, told, study.changed_at)
    running = [p for p in points if p.outcome is None and p.job_id is not None]
    since = max((p.ended_at for p in points if p.ended_at is not None), default=study.created_at)
    seconds = [float(p.decision["reasons"]["cost"]) for p in running if p.decision]
    work = _Underway(
        [p.job_id for p in running if p.job_id is not None],
        [f"point {p.number}" for p in running],
        seconds,
        [p.started_at for p in running],
    )
    return _of_tenant(tx, pool, "study", study.id, study.name, work, since, names, first)


class _Underway:
    """What runs for a tenant."""

    def __init__(
        self,
        job_ids: list[JobId],
        what: list[str],
        seconds: list[float],
        since: list[datetime],
        sliced: bool = False,
    ) -> None:
        self.job_ids, self.what, self.seconds, self.since, self.sliced = job_ids, what, seconds, since, sliced


def _of_tenant(
    tx: Tx,
    pool: PoolView | None,
    kind: str,
    tenant_id: str,
    name: str,
    work: _Underway,
    since: datetime,
    names: Mapping[str, str],
    first: str | None,
) -> Account:
    lead = None if pool is None else pool.lead_of(tenant_id)
    obstacle = None if pool is None or lead is None else pool.obstacles.get(lead)
    own = tenants.terms(tx, tenant_id)
    if own.paused_at is not None:
        obstacle = Obstacle(Standing.PAUSED, own.paused_at, own.paused_by)
    if work.job_ids:
        known = job_placements.placements(tx, work.job_ids)
        waits = all(job not in known or known[job].state is JobState.QUEUED for job in work.job_ids)
        if obstacle is None or not waits:
            began = min(work.since)
            left = max(work.seconds, default=0.0)
            told = words.running(work.what, began, left, tx.now, sliced=work.sliced)
            return Account(Standing.RUNNING, told, began)
    if obstacle is None and pool is not None and lead is not None:
        obstacle = _misfit(tx, pool, pool.state.tenants[lead])
    if obstacle is not None:
        return _blocked(kind, name, obstacle, since, tx)
    ahead = None if first is None or first == lead else names.get(first, "somebody of another project")
    return Account(Standing.WAITS_FOR_TURN, words.waiting_for_turn(ahead, since, tx.now), since)


def _blocked(kind: str, name: str, obstacle: Obstacle, since: datetime | None, tx: Tx) -> Account:
    if obstacle.by is not None:
        obstacle = replace(obstacle, by=identity.names_of(tx, [obstacle.by])[obstacle.by])
    told = words.sentence(kind, name, obstacle, since, tx.now, book_now(tx).currency)
    return Account(obstacle.kind, told, obstacle.since or since)


def _misfit(tx: Tx, pool: PoolView, tenant: Tenant) -> Obstacle | None:
    """Returns why nothing that the tenant could try fits any device of the pool; None where something does."""
    room = devices.largest_connected(tx)
    if room is None:
        return Obstacle(Standing.NO_DEVICE)
    place = PoolDevice("largest", room=room)
    if tenant.held or tenant.running or tenant.may_run(place, pool.now).any():
        return None
    if tenant.changed(deadline=np.inf).may_run(place, pool.now).any():
        return Obstacle(Standing.NOTHING_IN_TIME)
    if tenant.changed(budget=np.inf).may_run(place, pool.now).any():
        return Obstacle(Standing.NOTHING_AFFORDABLE)
    return Obstacle(Standing.FITS_NOWHERE) if tenant.open.any() else None


def first_of(pool: PoolView) -> str | None:
    """The tenant that the pool would serve next."""
    decision = pool.decide(ANY)
    return decision.tenant if isinstance(decision, StartTrial) else None


def expected_of(tx: Tx, job: Job, max_active: int, half_life_s: float) -> ExpectedTimes | None:
    """When a job that waits will probably start and end; None for one that runs, has ended, or waits for others."""
    if job.state not in (JobState.QUEUED, JobState.LAUNCHING):
        return None
    rng, learned = np.random.default_rng(0), correction(tx)
    return expected_times(tx, [job.id], max_active, rng, half_life_s, learned).get(job.id)


def of_job(tx: Tx, job: Job, max_active: int, half_life_s: float = HALF_LIFE_S) -> Account:
    """A job by itself, whoever's it is: its queue, what it needs, its device."""
    if job.state in TERMINAL:
        return Account(Standing.ENDED, words.of_ended_job(job.state.value, job.reason, job.ended_at, tx.now))
    if job.state is not JobState.QUEUED:
        waits = job.state is JobState.LAUNCHING
        reason = why_waiting(tx, job, max_active) if waits else None
        told = f"waits for a device: {reason}" if reason else ""
        told = told or words.of_active_job(job.state.value, job.device, job.started_at, tx.now)
        return Account(Standing.WAITS_FOR_ROOM if waits else Standing.RUNNING, told, job.started_at)
    owner = (job.project_id, job.user_id)
    obstacle = QueueAdmission(max_active).obstacles(tx, [owner]).get(owner)
    if obstacle is not None:
        return _blocked("job", job.name, obstacle, job.submitted_at, tx)
    needs = jobs.rows(tx, [job.id], lock=False)[job.id].blocked
    if needs:
        told = words.of_queued_job(Standing.WAITS_FOR_JOBS, 0, needs)
        told = f"{told}: {', '.join(job_needs.waits_for(tx, [job.id]).get(job.id, [])[:3])}"
        return Account(Standing.WAITS_FOR_JOBS, told, job.submitted_at)
    if devices.largest_connected(tx) is None:
        return _blocked("job", job.name, Obstacle(Standing.NO_DEVICE), job.submitted_at, tx)
    reason = no_place(tx, job)
    if reason is not None:
        return Account(Standing.WAITS_FOR_ROOM, f"waits in the queue: {reason}", job.submitted_at)
    queue = job_queues.queued_ids(tx, job.project_id, job.user_id)
    ahead = queue.index(job.id) if job.id in queue else 0
    typical = job_attempts.typical_seconds(tx) or UNKNOWN_JOB_S
    claim = None if ahead else better_claim(tx, owner, max_active, typical, half_life_s)
    before = None if claim is None else (_named(tx, claim.owner, job), claim.because.value)
    told = words.of_queued_job(Standing.WAITS_FOR_ROOM, ahead, 0, before)
    return Account(Standing.WAITS_FOR_ROOM, told, job.submitted_at)


def _named(tx: Tx, owner: Owner, job: Job) -> str:
    """Returns the name of somebody of the job's own project; of others nothing is told."""
    if owner[0] != job.project_id:
        return "somebody of another project"
    return identity.names_of(tx, [owner[1]]).get(owner[1], "somebody else")
