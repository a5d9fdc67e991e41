"""Why a job cannot start: never, which refuses it, or not yet, which is told to whoever waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from easel.declare.job import JobSpec
from easel.declare.resources import Resources, room_told
from easel.errors import InvalidInput
from easel.flow.budgets import USUALLY, headroom, micros_to_stop, spent_projects
from easel.flow.prices import price_history
from easel.records.device import Device
from easel.records.job import Job, JobState
from easel.store import devices, job_queues, jobs, reservations
from easel.store.devices import ENGINES
from easel.store.engine import Tx

_LABEL = "label "


def labels_of(device: Device) -> dict[str, str]:
    """What a device says about itself, as `--on NAME=VALUE` asks for it."""
    return {k.removeprefix(_LABEL): v for k, v in device.notes.items() if k.startswith(_LABEL)}


def check_can_start(pool: Sequence[Device], spec: JobSpec) -> None:
    """InvalidInput where no device of the pool, connected or not, could ever run the job.

    While no device is known nothing is refused. Machines of Ray and Slurm say nothing of labels, and more of them may
    come: with those only sizes are checked.
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


def why_waiting(tx: Tx, job: Job, max_active: int) -> str | None:
    """Why a queued or launching job has not begun, for its owner; None for one that waits for nothing."""
    if job.state is JobState.QUEUED:
        return _why_queued(tx, job, max_active)
    if job.state is not JobState.LAUNCHING:
        return None
    pool = [device for device in devices.machines(tx) if device.connected]
    if not pool:
        return "no device is connected: is a worker running?"
    pool = [device for device in pool if device.open]
    if not pool:
        return "every device that is connected is being drained: it starts when one is opened again"
    able = [d for d in pool if d.capacity.fits(job.spec.resources)]
    if not any(device.executor in ENGINES for device in pool):
        able = [device for device in able if _has(device, job.spec.wants)]
    if len(able) < job.spec.workers:
        return f"{len(able)} of the devices that are connected could run it, and it needs {job.spec.workers}"
    return f"it starts when a device has {_told(job.spec.resources)} free"


def _told(asked: Resources) -> str:
    return room_told(asked.vcpu, asked.memory_mb, asked.gpus)


def _why_queued(tx: Tx, job: Job, max_active: int) -> str | None:
    if needed := jobs.waits_for(tx, job.id):
        return f"it waits for {', '.join(needed[:3])}" + (" and others" if len(needed) > 3 else "")
    left = headroom(tx)
    if job.project_id in spent_projects(tx, left):
        return "the budget of the project is spent: an admin can raise it"
    if job.project_id in left and _to_stop(tx, job) > left[job.project_id]:
        return "too little is left of the project's budget to begin it and stop it in time: an admin can raise it"
    mine = [q for q in job_queues.states(tx, job.project_id, max_active) if q.user_id == job.user_id]
    if not mine:
        return None
    queue = mine[0]
    if queue.paused:
        return "the queue is paused: an admin can resume it (easel queues resume)"
    if queue.active >= queue.max_active:
        return f"{queue.active} of your jobs are active, and at most {queue.max_active} may be at once"
    kept = {one.device: one for one in reservations.to_come(tx) if one.start <= tx.now}
    able = [d for d in devices.machines(tx) if d.open and d.capacity.fits(job.spec.resources)]
    closed = [kept[d.name] for d in able if d.name in kept and kept[d.name].project_id != job.project_id]
    if able and len(closed) == len(able):
        return f"every device that could run it is reserved until {min(c.end for c in closed):%Y-%m-%d %H:%M} UTC"
    return "it is next in turn"


def _to_stop(tx: Tx, job: Job) -> int:
    return micros_to_stop(jobs.rows(tx, [job.id])[job.id].spec, tx.now, USUALLY, price_history(tx))


def _has(device: Device, wants: Mapping[str, str]) -> bool:
    labels = labels_of(device)
    return all(labels.get(name) == value for name, value in wants.items())
