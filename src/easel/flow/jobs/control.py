"""What people do to jobs and queues after submitting: kill, rerun, pause, resume, limit, reorder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from easel.declare.job import FreeRun, JobSpec, Notebook
from easel.declare.roles import Role
from easel.errors import Denied, InvalidInput
from easel.flow.jobs.advance import columns_of, life_of
from easel.flow.jobs.submit import Submission, submit_jobs
from easel.ids import JobId, ProjectId, UserId, id_end
from easel.records.attempt import EndReason
from easel.records.device import Device
from easel.records.identity import Caller
from easel.records.job import TERMINAL, Job, JobState
from easel.records.queue import QueueState
from easel.run.lifecycle import KillRequested, UpstreamFailed, step, to_json
from easel.store import devices, identity, job_needs, job_queues, jobs
from easel.store.engine import Tx


def kill_job(tx: Tx, caller: Caller, job_id: str, reason: str = "", end: EndReason = EndReason.KILLED) -> Job:
    """Ask for its end. A queued job ends at once; a running one when no process of it is left."""
    job = jobs.find(tx, caller.project_id, job_id)
    if job.user_id != caller.user.id and caller.role is not Role.ADMIN:
        raise Denied("only its owner or an admin of the project may kill a job")
    job_id = job.id  # it may have been named by its end
    row = jobs.rows(tx, [job_id])[job_id]
    if isinstance(job.spec.run, FreeRun) and job.state not in TERMINAL:
        # Nobody here can end its process; what can be said is that its record is closed.
        ended = {"state": JobState.KILLED.value, "reason": reason or None, "ended_at": tx.now}
        jobs.change(tx, [(row, ended)])
        tx.emit("job.killed", job_id, project_id=caller.project_id, actor=caller.user.id, body={})
        return jobs.find(tx, caller.project_id, job_id)
    what = KillRequested(reason or f"killed by {caller.user.name}", end)
    before = life_of(row)
    life = step(before, what).life
    if life != before:
        jobs.change(tx, [(row, columns_of(life, row, tx.now))])
        kind = "job.killed" if life.over else "job.kill_requested"
        tx.emit(kind, job_id, project_id=caller.project_id, actor=caller.user.id, body=to_json(what))
        if life.over:
            _fail_dependants(tx, caller, job_id)
    return jobs.find(tx, caller.project_id, job_id)


def _fail_dependants(tx: Tx, caller: Caller, killed: str) -> None:
    """Jobs that should run after one that was killed while it waited never will."""
    ended = [killed]
    while ended:
        waiting = sorted({job for needed in job_needs.dependants(tx, ended).values() for job in needed})
        rows = jobs.rows(tx, waiting)
        what = UpstreamFailed(f"job {killed}, which it needs, was killed")
        ended = []
        for job, row in rows.items():
            before = life_of(row)
            life = step(before, what).life
            if life != before:
                jobs.change(tx, [(row, columns_of(life, row, tx.now))])
                tx.emit(
                    "job.failed", job, project_id=caller.project_id, actor=caller.user.id, body=to_json(what)
                )
                ended.append(job)


def rerun_job(
    tx: Tx, caller: Caller, job_id: str, *, input_set: str | None = None, from_cell: int | None = None
) -> Job:
    """A new job that names this one as its parent: the same versions of code and input, or another input.

    A notebook may begin `from_cell`: what the cells before it left is its parent's.
    """
    parent = jobs.find(tx, caller.project_id, job_id)
    if isinstance(parent.spec.run, FreeRun):
        raise InvalidInput(f"{job_id} ran elsewhere, Easel only keeps its record: run it again where it ran")
    row = jobs.rows(tx, [parent.id])[parent.id]
    spec: JobSpec = replace(parent.spec, code=row.code_set, input=input_set or row.input_set)
    if from_cell is not None:
        if not isinstance(spec.run, Notebook):
            raise InvalidInput(f"{job_id} is not a notebook: only those have cells to begin from")
        spec = replace(spec, run=replace(spec.run, first=from_cell))
    return submit_jobs(tx, caller, [Submission(spec, parent_id=parent.id)])[0]


def _queued(named: str, waiting: Sequence[JobId]) -> JobId:
    """The waiting job of this id, or whose id ends so."""
    end = id_end(named)
    found = [job for job in waiting if job == named or (end is not None and job.endswith(end))]
    if len(found) != 1:
        why = (
            "names several jobs" if found else "is not in this queue: it began, ended, or is somebody else's"
        )
        raise InvalidInput(f"{named[:60]} {why}")
    return found[0]


def queues(tx: Tx, caller: Caller, max_active: int) -> list[QueueState]:
    """Returns who waits and who runs in the caller's project, by user."""
    return job_queues.states(tx, caller.project_id, max_active)


def devices_now(tx: Tx) -> list[Device]:
    """Returns the devices of the pool, connected or not."""
    return devices.list_devices(tx)


def set_queue(
    tx: Tx, caller: Caller, user: str | None, *, max_active: int | None = None, paused: bool | None = None
) -> None:
    """Change a user's queue, or with None what holds for the project. What is None stays as it is."""
    who = job_queues.PROJECT if user is None else identity.get_member(tx, caller.project_id, user).user.id
    if max_active is not None and not 0 <= max_active <= 100_000:
        raise InvalidInput("max_active must be between 0 and 100,000")
    limit, was_paused = job_queues.get_queue(tx, caller.project_id, who)
    job_queues.set_queue(
        tx,
        caller.project_id,
        who,
        max_active=limit if max_active is None else max_active,
        paused=was_paused if paused is None else paused,
    )
    body = {"user": user, "max_active": max_active, "paused": paused}
    tx.emit("queue.changed", who or "project", project_id=caller.project_id, actor=caller.user.id, body=body)


def reorder(tx: Tx, caller: Caller, user: str, first: Sequence[str]) -> list[JobId]:
    """Put these queued jobs of a user first, in this order; returns the whole queue as it is then."""
    who: UserId = identity.get_member(tx, caller.project_id, user).user.id
    waiting = job_queues.queued_ids(tx, caller.project_id, who)
    wanted = list(dict.fromkeys(_queued(job, waiting) for job in first))
    lowest = job_queues.lowest_rank(tx, caller.project_id, who)
    job_queues.set_ranks(tx, {job: lowest - len(wanted) + i for i, job in enumerate(wanted)})
    body = {"user": user, "first": list(wanted)}
    tx.emit("queue.reordered", who, project_id=caller.project_id, actor=caller.user.id, body=body)
    return job_queues.queued_ids(tx, ProjectId(caller.project_id), who)
