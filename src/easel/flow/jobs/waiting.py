"""Why a job cannot start: never, which refuses it, or not yet, which is told to whoever waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from easel.declare.counted import counted
from easel.declare.job import JobSpec
from easel.declare.resources import Resources, room_told
from easel.errors import InvalidInput
from easel.flow.budgets import USUALLY, headroom, micros_to_stop, spent_projects
from easel.flow.prices import price_history
from easel.ids import JobId, ProjectId, UserId
from easel.price.book import TERMS
from easel.records.device import Device, Reservation
from easel.records.job import Job, JobState
from easel.records.queue import Owner, QueueState
from easel.store import devices, job_needs, job_queues, jobs, pool_use, reservations
from easel.store.devices import ENGINES
from easel.store.engine import Tx
from easel.store.pool_use import Holder
from easel.tenancy.places import PRICE

_LABEL = "label "
_LOOKED_AT = 1000
"""So many jobs of a queue are looked at to say how many are ahead."""
MOST_HOLDERS = 2
LONGEST_NAME = 40
"""So many jobs that hold room are named, and so much of their names."""


def labels_of(device: Device) -> dict[str, str]:
    """What a device says about itself, as `--on NAME=VALUE` asks for it."""
    return {k.removeprefix(_LABEL): v for k, v in device.notes.items() if k.startswith(_LABEL)}


def check_can_start(pool: Sequence[Device], spec: JobSpec) -> None:
    """InvalidInput where no device of the pool, connected or not, could ever run the job.

    While no device is known nothing is refused. Machines of Ray and Slurm say nothing of labels, and more of them may
    come: with those only sizes are checked, and that nobody names a price that no device has.
    """
    if not pool:
        return
    large = [device for device in pool if device.capacity.fits(spec.resources)]
    if not large:
        raise InvalidInput(
            f"no device can hold {spec.name!r}, which asks for {_told(spec.resources)}: the pool has at most "
            + room_told(
                max(d.capacity.vcpu for d in pool),
                max(d.capacity.memory_mb for d in pool),
                max(len(d.capacity.gpus) for d in pool),
            )
        )
    if any(device.executor in ENGINES for device in pool):
        _check_price(pool, spec)
        return
    labelled = [device for device in large if _has(device, spec.wants)]
    if not labelled:
        known = sorted({f"{name}={value}" for device in pool for name, value in labels_of(device).items()})
        wanted = ", ".join(f"{name}={value}" for name, value in spec.wants.items())
        there = f"labels there are: {', '.join(known[:20])}" if known else "no device has labels"
        raise InvalidInput(f"no device that can hold {spec.name!r} has {wanted}: {there} (`easel devices`)")
    if len(labelled) < spec.workers:
        raise InvalidInput(
            f"{spec.name!r} asks for {spec.workers} devices side by side, and the pool has {len(labelled)} that "
            "could take part: ask for fewer --workers"
        )


def _check_price(pool: Sequence[Device], spec: JobSpec) -> None:
    """A job is billed by the price and the terms that it wants of its device: somebody has to offer them."""
    asked = {name: value for name, value in spec.wants.items() if name in (PRICE, TERMS)}
    if not any(_has(device, asked) for device in pool):
        wanted = ", ".join(f"{name}={value}" for name, value in asked.items())
        raise InvalidInput(f"no device of the pool has {wanted}: leave it out (`easel devices` lists labels)")


def why_waiting(tx: Tx, job: Job, max_active: int) -> str | None:
    """Why a queued or launching job has not begun, for its owner; None for one that waits for nothing."""
    return WaitingReasons(tx, max_active, [job]).of(job)


def no_place(tx: Tx, job: Job) -> str | None:
    """Why the devices that are connected could not run it even if they were empty; None where they could."""
    return WaitingReasons(tx, 0, [job]).no_place(job)


class WaitingReasons:
    """Why jobs have not begun; what holds for all of them is asked for once."""

    def __init__(self, tx: Tx, max_active: int, asked: Sequence[Job]) -> None:
        self._tx, self._max_active, self._asked = tx, max_active, asked
        self._queues: dict[ProjectId, Mapping[UserId, QueueState]] = {}
        self._ahead: dict[Owner, Mapping[JobId, int]] = {}

    def of(self, job: Job) -> str | None:
        if job.state is JobState.QUEUED:
            return self._why_queued(job)
        return self._why_launching(job) if job.state is JobState.LAUNCHING else None

    def _why_launching(self, job: Job) -> str:
        room = f"it starts when a device has {_told(job.spec.resources)} free"
        return self.no_place(job) or room + self._after_whom(job.project_id)

    def _after_whom(self, project_id: ProjectId) -> str:
        """Returns who holds room now: jobs of the same project by name, how many of others'; nothing if nobody."""
        mine = [one.name for one in self._holders if one.project_id == project_id]
        others, more = len(self._holders) - len(mine), len(mine) - MOST_HOLDERS
        told = [f"{name[:LONGEST_NAME]!r}" for name in mine[:MOST_HOLDERS]]
        told += [f"{more} more of this project"] if more > 0 else []
        told += [f"{counted(others, 'job')} of other projects"] if others else []
        if not told:
            return ""
        verb = "runs" if len(self._holders) == 1 else "run"
        return f"; now {' and '.join([', '.join(told[:-1]), told[-1]] if told[1:] else told)} {verb}"

    def no_place(self, job: Job) -> str | None:
        """Why the devices that are connected could not run it even if they were empty; None where they could."""
        pool = [device for device in self._machines if device.connected]
        if not pool:
            return "no device is connected: is a worker running?"
        pool = [device for device in pool if device.open]
        if not pool:
            return "every device that is connected is being drained: it starts when one is opened again"
        able = [d for d in pool if d.capacity.fits(job.spec.resources)]
        if not any(device.executor in ENGINES for device in pool):
            able = [device for device in able if _has(device, job.spec.wants)]
        if len(able) < job.spec.workers:
            return (
                f"{len(able)} of the devices that are connected could run it, and it needs {job.spec.workers}"
            )
        kept = {one.device: one for one in self._reservations}
        closed = [kept[d.name] for d in able if d.name in kept and kept[d.name].project_id != job.project_id]
        if len(closed) == len(able):
            return f"every device that could run it is reserved until {min(c.end for c in closed):%Y-%m-%d %H:%M} UTC"
        return None

    def _why_queued(self, job: Job) -> str | None:
        tx = self._tx
        if needed := self._needed.get(job.id):
            return f"it waits for {', '.join(needed[:3])}" + (" and others" if len(needed) > 3 else "")
        left = self._headroom
        if job.project_id in self._spent:
            return "the budget of the project is spent: an admin can raise it"
        if job.project_id in left and _to_stop(tx, job) > left[job.project_id]:
            return "too little is left of the project's budget to begin it and stop it in time: an admin can raise it"
        queue = self._queue_of(job)
        if queue is None:
            return None
        if queue.paused:
            return "the queue is paused: an admin can resume it (easel queues resume)"
        if queue.active >= queue.max_active:
            return f"{queue.active} of your jobs are active, and at most {queue.max_active} may be at once"
        if any(device.connected for device in self._machines) and (reason := self.no_place(job)):
            return reason
        ahead = self._ahead_of(job)
        if ahead >= _LOOKED_AT:
            return f"at least {counted(ahead, 'job')} of its owner's are ahead of it in the queue"
        if ahead:
            return f"{counted(ahead, 'job')} of its owner's {'is' if ahead == 1 else 'are'} ahead of it in the queue"
        return "it is next in turn" + self._after_whom(job.project_id)

    def _queue_of(self, job: Job) -> QueueState | None:
        if job.project_id not in self._queues:
            found = job_queues.states(self._tx, job.project_id, self._max_active)
            self._queues[job.project_id] = {queue.user_id: queue for queue in found}
        return self._queues[job.project_id].get(job.user_id)

    def _ahead_of(self, job: Job) -> int:
        owner = (job.project_id, job.user_id)
        if owner not in self._ahead:
            queue = job_queues.queued_ids(self._tx, *owner, _LOOKED_AT)
            self._ahead[owner] = {each: number for number, each in enumerate(queue)}
        return self._ahead[owner].get(job.id, len(self._ahead[owner]))

    @cached_property
    def _needed(self) -> dict[JobId, list[str]]:
        return job_needs.waits_for(self._tx, [job.id for job in self._asked if job.state is JobState.QUEUED])

    @cached_property
    def _machines(self) -> list[Device]:
        return devices.machines(self._tx)

    @cached_property
    def _holders(self) -> list[Holder]:
        return pool_use.holders(self._tx)

    @cached_property
    def _headroom(self) -> dict[ProjectId, int]:
        return headroom(self._tx)

    @cached_property
    def _spent(self) -> frozenset[ProjectId]:
        return spent_projects(self._tx, self._headroom)

    @cached_property
    def _reservations(self) -> list[Reservation]:
        return [one for one in reservations.to_come(self._tx) if one.start <= self._tx.now]


def _told(asked: Resources) -> str:
    return room_told(asked.vcpu, asked.memory_mb, asked.gpus)


def _to_stop(tx: Tx, job: Job) -> int:
    spec = jobs.rows(tx, [job.id], lock=False)[job.id].spec
    return micros_to_stop(spec, tx.now, USUALLY, price_history(tx))


def _has(device: Device, wants: Mapping[str, str]) -> bool:
    labels = labels_of(device)
    return all(labels.get(name) == value for name, value in wants.items())
