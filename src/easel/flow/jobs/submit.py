"""A job is submitted: checked, its inputs pinned, entered into the catalogue and the queue, all at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from easel import traces
from easel.declare.job import JobSpec, Trial
from easel.errors import Conflict, InvalidInput, QuotaExhausted
from easel.flow.budgets import check_admission
from easel.flow.jobs import files
from easel.flow.jobs.waiting import check_can_start
from easel.flow.lake.file_set import check_may_write
from easel.flow.lake.tag import check_key, check_value
from easel.flow.quotas import QuotaAsk, check_quotas
from easel.ids import JobId
from easel.records.device import Device
from easel.records.identity import Caller
from easel.records.job import TERMINAL, Job, JobState
from easel.records.lake import FileSetVersion, Kind
from easel.store import devices, job_catalogue, job_needs, job_queues, jobs, submissions
from easel.store.engine import NewEvent, Tx
from easel.store.lake.grants import remember_no_grants
from easel.store.lake.tags import NewTag, put_all
from easel.store.noting import noted
from easel.store.upsert import lock

UPSTREAM = "step:"
"""An input `step:NAME` is the output of another step of the same pipeline."""
_AT_ONCE = 1000
"""More people than submit at one moment: while so many times as much has room, nobody need wait for the others."""


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
    code_digest: str | None = None
    """What the version that `spec.code` names has to hold."""


def submit_job(
    tx: Tx,
    caller: Caller,
    spec: JobSpec,
    *,
    parent_id: JobId | None = None,
    after: Sequence[str] = (),
    pool: Sequence[Device] | None = None,
    code_digest: str | None = None,
) -> Job:
    """The usual way: one job; `after` are jobs that must finish before it starts."""
    needs: dict[str, JobId] = {job: JobId(job) for job in _unfinished(tx, caller, after)}
    wanted = Submission(spec, parent_id, needs=needs, code_digest=code_digest)
    return submit_jobs(tx, caller, [wanted], pool=pool)[0]


def _unfinished(tx: Tx, caller: Caller, after: Sequence[str]) -> list[str]:
    """Returns the jobs that have not ended; one that ended otherwise than finished is a Conflict."""
    found = [jobs.find(tx, caller.project_id, job) for job in dict.fromkeys(after)]
    broken = next(
        (job for job in found if job.state in TERMINAL and job.state is not JobState.FINISHED), None
    )
    if broken is not None:
        raise Conflict(f"job {broken.id}, after which this one should run, ended {broken.state.value}")
    return [job.id for job in found if job.state not in TERMINAL]


def submit_jobs(
    tx: Tx,
    caller: Caller,
    wanted: Sequence[Submission],
    *,
    max_queued: int = 100_000,
    pool: Sequence[Device] | None = None,
) -> list[Job]:
    """Many at once, at the cost of few; all or none. `pool` is the devices, where the caller has just looked."""
    known = submissions.limits(tx, caller.project_id, caller.user.id)
    if known.budget:
        check_admission(tx, caller)
    if known.quotas:
        gpus = max((each.spec.resources.gpus for each in wanted), default=0.0)
        check_quotas(tx, caller, QuotaAsk(jobs=len(wanted), gpus=gpus))
    if known.ever + _AT_ONCE * len(wanted) > max_queued:
        _check_queue(tx, caller, len(wanted), max_queued)
    if not known.queue:
        job_queues.open_queue(tx, caller.project_id, caller.user.id)
    if not known.grants:
        remember_no_grants(tx, caller)
    pool = devices.machines(tx) if pool is None else pool
    checks = _Checks(tx, caller)
    new: list[jobs.NewJob] = []
    for each in wanted:
        check_can_start(pool, each.spec)
        new.append(checks.prepare(each))
    numbers = job_catalogue.register(tx, caller.project_id, caller.user.id, [job.id for job in new])
    new = [replace(job, artifact_id=numbers[job.id]) for job in new]
    reads = [
        (numbers[job.id], read) for job in new for read in {job.input_id, job.code_id} if read is not None
    ]
    job_catalogue.add_reads(tx, reads)
    put_all(
        tx,
        [
            NewTag(job.project_id, numbers[job.id], Kind.JOB, check_key(key), check_value(key, value))
            for job in new
            for key, value in job.spec.tags.items()
        ],
    )
    submitted = jobs.add(tx, new)
    job_needs.add_needs(
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
    if traces.is_on():
        _trace(tx, [job.id for job in new])
    return submitted


def _trace(tx: Tx, submitted: Sequence[str]) -> None:
    """Leaves the span to the request that submits, which knows when it began; what the controller submits has none."""
    note = noted.get()
    if note is not None:
        note.jobs += tuple(submitted)
        return
    for job in submitted:
        traces.record(traces.SUBMIT, "easel-controller", job, tx.now, tx.now)


def _check_queue(tx: Tx, caller: Caller, more: int, max_queued: int) -> None:
    lock(tx, f"queue {caller.project_id} {caller.user.id}")  # or two at once would both find the last place
    if jobs.ever(tx) + more <= max_queued:
        return  # no more can wait than ever were: counting ten thousand would take longer than all the rest
    waiting = job_queues.queued_count(tx, caller.project_id, caller.user.id)
    if waiting + more > max_queued:
        raise QuotaExhausted(
            f"{waiting} of your jobs are queued and at most {max_queued} may be: wait until some have run"
        )


class _Checks:
    """Each reference is looked up once, however many jobs name it."""

    def __init__(self, tx: Tx, caller: Caller) -> None:
        self._tx, self._caller = tx, caller
        self._sets: dict[str, FileSetVersion] = {}
        self._codes: dict[tuple[str, str | None], files.PinnedCode] = {}
        self._writable: set[str] = set()

    def prepare(self, wanted: Submission) -> jobs.NewJob:
        spec = wanted.spec
        if isinstance(spec.run, Trial) and (spec.environment.secrets or spec.code):
            raise InvalidInput("a trial is the platform's own code: it takes neither code nor secrets")
        if spec.output_set is not None and spec.output_set not in self._writable:
            check_may_write(self._tx, self._caller, spec.output_set)
            self._writable.add(spec.output_set)
        found = self._input(wanted)
        code = self._code(spec.code, wanted.code_digest)
        return jobs.NewJob(
            id=wanted.id or JobId(self._tx.mint("job")),
            project_id=self._caller.project_id,
            user_id=self._caller.user.id,
            spec=spec,
            blocked=len(set(wanted.needs.values())),
            code_set=code.reference if code else None,
            code_id=code.set_id if code else None,
            input_set=str(found) if found else None,
            input_id=found.artifact.id if found else None,
            parent_id=wanted.parent_id,
            pipeline_id=wanted.pipeline_id,
            step=wanted.step,
        )

    def _input(self, wanted: Submission) -> FileSetVersion | None:
        name = wanted.spec.input
        if name is not None and name.startswith(UPSTREAM):
            step = name.removeprefix(UPSTREAM)
            if step not in wanted.needs and step not in wanted.ready:
                raise InvalidInput(f"{name!r} names no step of this pipeline")
            name = wanted.ready.get(step)
        if name is None:
            return None
        if name not in self._sets:
            self._sets[name] = files.pin_set(self._tx, self._caller, name)
        return self._sets[name]

    def _code(self, reference: str | None, digest: str | None) -> files.PinnedCode | None:
        if reference is None:
            return None
        if (reference, digest) not in self._codes:
            self._codes[reference, digest] = files.pin_code(self._tx, self._caller, reference, digest)
        return self._codes[reference, digest]
