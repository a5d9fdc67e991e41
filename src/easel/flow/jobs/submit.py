"""A job is submitted: checked, its inputs pinned, entered into the catalogue and the queue, all at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from easel.declare.job import JobSpec, Trial
from easel.errors import InvalidInput, QuotaExhausted
from easel.flow.jobs import files
from easel.flow.lake.file_set import check_may_write
from easel.flow.lake.jobs import register_job
from easel.ids import JobId
from easel.records.identity import Caller
from easel.records.job import Job
from easel.store import devices, job_queues, jobs
from easel.store.engine import NewEvent, Tx

UPSTREAM = "step:"
"""An input `step:NAME` is the output of another step of the same pipeline."""


@dataclass(frozen=True, slots=True)
class Submission:
    """One job to submit. `needs` maps the names of upstream steps to the jobs that will have run them."""

    spec: JobSpec
    parent_id: JobId | None = None
    pipeline_id: str | None = None
    step: str | None = None
    needs: Mapping[str, JobId] = field(default_factory=dict)
    ready: Mapping[str, str] = field(default_factory=dict)
    """Upstream steps that need not run, and the file sets that stand for their outputs."""
    id: JobId | None = None


def submit_job(tx: Tx, caller: Caller, spec: JobSpec, *, parent_id: JobId | None = None) -> Job:
    """The usual way: one job."""
    return submit_jobs(tx, caller, [Submission(spec, parent_id)])[0]


def submit_jobs(
    tx: Tx, caller: Caller, wanted: Sequence[Submission], *, max_queued: int = 100_000
) -> list[Job]:
    """Many at once, at the cost of few; all or none."""
    waiting = job_queues.queued_count(tx, caller.project_id, caller.user.id)
    if waiting + len(wanted) > max_queued:
        raise QuotaExhausted(
            f"{waiting} of your jobs are queued and at most {max_queued} may be: wait until some have run"
        )
    pool = devices.largest(tx)
    new: list[jobs.NewJob] = []
    for each in wanted:
        if pool is not None and not pool.fits(each.spec.resources):
            raise InvalidInput(
                f"no device can hold {each.spec.name!r}: the largest has {pool.vcpu:g} vCPU, "
                f"{pool.memory_mb} MB and {len(pool.gpus)} GPUs"
            )
        new.append(_prepare(tx, caller, each))
    ids = jobs.artifact_ids(tx, caller.project_id, [job.id for job in new])
    jobs.add(tx, [replace(job, artifact_id=ids[job.id]) for job in new])
    jobs.add_needs(
        tx,
        [(job.id, needed) for job, each in zip(new, wanted, strict=True) for needed in each.needs.values()],
    )
    tx.emit_all(
        [
            NewEvent(
                "job.queued",
                job.id,
                caller.project_id,
                caller.user.id,
                {"name": job.spec.name, "kind": job.spec.run.kind, "parent": job.parent_id},
            )
            for job in new
        ]
    )
    return jobs.find_many(tx, caller.project_id, [job.id for job in new])


def _prepare(tx: Tx, caller: Caller, wanted: Submission) -> jobs.NewJob:
    spec = wanted.spec
    job_id = wanted.id or JobId(tx.mint("job"))
    if isinstance(spec.run, Trial) and (spec.environment.secrets or spec.code):
        raise InvalidInput("a trial is the platform's own code: it takes neither code nor secrets")
    if spec.output_set is not None:
        check_may_write(tx, caller, spec.output_set)
    input_set = spec.input
    if input_set is not None and input_set.startswith(UPSTREAM):
        step = input_set.removeprefix(UPSTREAM)
        if step not in wanted.needs and step not in wanted.ready:
            raise InvalidInput(f"{input_set!r} names no step of this pipeline")
        input_set = wanted.ready.get(step)
    code = files.pin_code(tx, caller, spec.code) if spec.code else None
    inputs = register_job(tx, caller, job_id, [input_set.removeprefix("/@")] if input_set else [])
    return jobs.NewJob(
        id=job_id,
        project_id=caller.project_id,
        user_id=caller.user.id,
        spec=spec,
        blocked=len(set(wanted.needs.values())),
        code_set=code,
        input_set=str(inputs[0]) if inputs else None,
        input_id=inputs[0].artifact.id if inputs else None,
        parent_id=wanted.parent_id,
        pipeline_id=wanted.pipeline_id,
        step=wanted.step,
    )
