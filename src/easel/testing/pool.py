"""The pool for tests: a keeper over a real store, and jobs that end as the test says, without any worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sqlalchemy import select, update

from easel.declare.resources import Room
from easel.flow.lake.upload import Lake
from easel.ids import JobId, ProjectId
from easel.records.attempt import EndReason
from easel.records.job import Job, JobState
from easel.schedule.policies import Policy
from easel.serve.learning import build_keeper
from easel.store import devices
from easel.store import jobs as job_queries
from easel.store.engine import Store
from easel.store.schema.jobs import jobs
from easel.tenancy.keeper import Keeper
from easel.tenancy.rules import Rules


@dataclass
class PoolUnderTest:
    """`turn` is what the controller does when it is woken; `end` is what a worker reports."""

    lake: Lake
    rules: Rules = field(default_factory=Rules)
    policy: Policy | None = None
    keeper: Keeper = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    @property
    def store(self) -> Store:
        return self.lake.store

    def restart(self) -> None:
        """Another controller, which knows what the records say."""
        self.keeper = build_keeper(self.lake, self.policy, self.rules)

    def device(
        self,
        name: str = "core",
        vcpu: float = 1.0,
        memory_mb: int = 8192,
        notes: Mapping[str, str] | None = None,
    ) -> None:
        with self.store.write() as tx:
            devices.seen(tx, name, "local", Room(vcpu, memory_mb), notes or {})

    def turn(self) -> list[Job]:
        """The jobs that were started."""
        before = self._newest()
        self.keeper.turn()
        return [job for job in self.waiting() if self._seq(job.id) > before]

    def waiting(self) -> list[Job]:
        """Jobs that have not ended, oldest first."""
        over = [state.value for state in (JobState.FINISHED, JobState.FAILED, JobState.KILLED)]
        query = select(jobs).where(jobs.c.state.not_in(over)).order_by(jobs.c.seq)
        with self.store.read() as tx:
            return [job_queries.job_of(row) for row in tx.execute(query)]

    def _newest(self) -> int:
        with self.store.read() as tx:
            return job_queries.ever(tx)

    def _seq(self, job_id: str) -> int:
        with self.store.read() as tx:
            return int(tx.execute(select(jobs.c.seq).where(jobs.c.id == job_id)).scalar_one())

    def begin(self, job: Job | JobId) -> None:
        """A device has begun the job."""
        job_id = job.id if isinstance(job, Job) else job
        with self.store.write() as tx:
            row = tx.execute(select(jobs).where(jobs.c.id == job_id)).one()
            running = {"state": JobState.RUNNING.value, "revision": row.revision + 1, "started_at": tx.now}
            tx.execute(update(jobs).where(jobs.c.id == job_id).values(**running))

    def end(
        self,
        job: Job | JobId,
        quality: float | None = None,
        seconds: float = 1.0,
        result: Mapping[str, Any] | None = None,
        peak_memory_mb: float = 100.0,
        end: EndReason | None = None,
    ) -> None:
        """The job is over: finished with this quality, or failed where there is none, for the reason `end`."""
        job_id = job.id if isinstance(job, Job) else job
        state = JobState.FAILED if quality is None and result is None else JobState.FINISHED
        told = dict(result or {})
        if quality is not None:
            told["quality"] = quality
        with self.store.write() as tx:
            row = tx.execute(select(jobs).where(jobs.c.id == job_id)).one()
            output = f"{row.spec['output_set'] or row.id}:{row.seq}" if state is JobState.FINISHED else None
            usage = {"cpu_seconds": seconds, "peak_memory_mb": peak_memory_mb, "wall_seconds": seconds}
            tx.execute(
                update(jobs)
                .where(jobs.c.id == job_id)
                .values(
                    state=state.value,
                    revision=row.revision + 1,
                    result=told or None,
                    usage=usage,
                    end_reason=None if end is None else end.value,
                    output_set=output,
                    started_at=tx.now - timedelta(seconds=seconds),
                    ended_at=tx.now,
                )
            )
            tx.emit(f"job.{state.value}", job_id, project_id=ProjectId(row.project_id), body={})
