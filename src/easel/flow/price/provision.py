"""A profiled command is estimated, provisioned, submitted; afterwards the promise is compared with the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from easel.declare.job import JobSpec
from easel.declare.resources import Resources
from easel.errors import Conflict, EaselError, InvalidInput
from easel.flow.jobs.submit import submit_job
from easel.flow.price.billing import book_now
from easel.flow.price.budgets import check_admission
from easel.flow.price.profile import plain, run_from, shell
from easel.flow.price.provenance import record_model
from easel.price.bill import MICROS
from easel.price.design import NO_GPU
from easel.price.grid import ANY_GPU, ON_CPU, Grid, Shape, paper_grid
from easel.price.memory import MemoryModel
from easel.price.provision import Aim, Chosen, Infeasible, Offer, Quote, Wish, front, provision, quote
from easel.price.queueing import Held, Waiting, expected_wait
from easel.price.runs import GPUS, Array, Outcome, ProfiledRun
from easel.price.runtime import RuntimeModel, learn
from easel.price.template import Template, parse
from easel.records.identity import Caller
from easel.records.job import Job, JobState
from easel.store import billing, devices, profiles
from easel.store.engine import Store, Tx
from easel.store.jobs import SPEC
from easel.store.profiles import Profile

UNKNOWN_JOB_S = 60.0
"""How long a job is thought to take of which nothing is known."""

INDIFFERENCE = 0.02
"""Sizes whose predicted times (or costs) differ by less than a fiftieth are as good as each other."""


@dataclass(frozen=True)
class ProvisionRequest:
    """Values for the template's hints by name or in order; a deadline is a moment, `max_seconds` a duration."""

    values: Mapping[str, float] | Sequence[float]
    aim: Aim
    max_seconds: float | None = None
    max_cost: float | None = None
    deadline: datetime | None = None
    confidence: float | None = None
    input: str | None = None


@dataclass(frozen=True)
class Answer:
    """`quote` is the whole grid; `wait_s` what the queue is expected to cost the chosen (or fastest) size."""

    profile: Profile
    wish: Wish
    priced: Quote
    outcome: Chosen | Infeasible
    job: Job | None = None

    @property
    def front(self) -> list[Offer]:
        return front(self.priced)


def fitted(tx: Tx, caller: Caller, name: str) -> Profile:
    """The newest version with a model; an error says how far a profile without one is."""
    found = profiles.latest_fitted(tx, caller.project_id, name)
    if found is not None:
        return found
    latest = profiles.find(tx, caller.project_id, name)
    if latest.state == "running":
        raise Conflict(f"profile {name} still runs: `easel profile show {name}` says how far it is")
    raise Conflict(f"profile {name} has no model: {latest.reason}")


def models(profile: Profile) -> tuple[RuntimeModel, MemoryModel]:
    assert profile.runtime is not None
    assert profile.memory is not None
    return RuntimeModel.from_json(profile.runtime), MemoryModel.from_json(profile.memory)


def gpus_of(profile: Profile) -> tuple[float, ...]:
    """The numbers of GPUs that the profile tried."""
    return tuple(sorted({float(run["features"].get(GPUS, 0.0)) for run in profile.runs})) or NO_GPU


def arguments_of(profile: Profile, template: Template, asked: ProvisionRequest) -> dict[str, float]:
    values = asked.values
    if isinstance(values, Mapping) and "input_mb" in values:
        size = {"input_mb": float(values["input_mb"])}
        return {**template.values({n: v for n, v in values.items() if n != "input_mb"}), **size}
    return template.values(values)


def answer(tx: Tx, caller: Caller, name: str, asked: ProvisionRequest, grid: Grid | None = None) -> Answer:
    """The best size within the pool for this request, without submitting anything."""
    profile = fitted(tx, caller, name)
    runtime, memory = models(profile)
    arguments = arguments_of(profile, parse(profile.template), asked)
    wish = _wish(asked, tx.now)
    cells = within_pool(tx, grid or paper_grid(gpus_of(profile)))
    waits = _waits(tx, cells)
    priced = quote(cells, arguments, runtime, memory, book_now(tx), asked.confidence, waits)
    return Answer(profile, wish, priced, provision(priced, wish))


def _wish(asked: ProvisionRequest, now: datetime) -> Wish:
    limit = asked.max_seconds
    if asked.deadline is not None:
        left = (asked.deadline - now).total_seconds()
        if left <= 0:
            raise InvalidInput("the deadline has passed")
        limit = left if limit is None else min(limit, left)
    return Wish(asked.aim, limit, asked.max_cost, asked.confidence, INDIFFERENCE)


def within_pool(tx: Tx, grid: Grid) -> Grid:
    """The cells that some device can hold. Where no device is known yet, all of them."""
    rooms = [device.capacity for device in devices.list_devices(tx)]
    if not rooms:
        return grid
    fits = np.zeros(len(grid), dtype=bool)
    for room in rooms:
        enough = grid.gpu_counts <= len(room.gpus)
        fits |= (grid.cpus <= room.vcpu + 1e-9) & (grid.memory_mb <= room.memory_mb) & enough
    if not fits.any():
        most = max(rooms, key=lambda room: (len(room.gpus), room.vcpu))
        raise Conflict(
            f"no size of the grid fits the pool: its largest device has {most.vcpu:g} vCPU, {most.memory_mb} MB and"
            f" {len(most.gpus)} GPUs"
        )
    return grid.where(fits)


def _waits(tx: Tx, grid: Grid) -> Array:
    """`(m,)`: how long each size is expected to wait, from the jobs that hold or want processors now."""
    capacity = sum(device.capacity.vcpu for device in devices.machines(tx) if device.connected)
    if capacity <= 0:
        return np.zeros(len(grid))
    typical = billing.typical_seconds(tx) or UNKNOWN_JOB_S
    held_rows = billing.held(tx)
    queued = billing.wanting(tx)
    promised = profiles.promised_seconds(tx, [r.job_id for r in held_rows] + [r.id for r in queued])
    held = [
        Held(
            float(row.spec["resources"]["vcpu"]),
            promised.get(row.job_id, typical) - (tx.now - row.since).total_seconds(),
        )
        for row in held_rows
    ]
    ahead = [Waiting(float(r.spec["resources"]["vcpu"]), promised.get(r.id, typical)) for r in queued]
    sizes = np.unique(grid.cpus)
    by_size = {size: expected_wait(capacity, held, ahead, size) for size in sizes if size <= capacity}
    return np.array([by_size.get(size, 0.0) for size in grid.cpus])


def submit_provisioned(
    tx: Tx, caller: Caller, name: str, asked: ProvisionRequest, grid: Grid | None = None
) -> Answer:
    """Choose, submit, and keep the promise. Nothing is submitted when no size will do."""
    made = answer(tx, caller, name, asked, grid)
    if isinstance(made.outcome, Infeasible):
        return made
    offer = made.outcome.offer
    check_admission(tx, caller, round(offer.cost * MICROS))
    job = submit_job(tx, caller, _spec(made.profile, asked, made.priced.arguments, offer.shape))
    shape = offer.shape
    profiles.add_promise(
        tx,
        {
            "job_id": job.id,
            "project_id": caller.project_id,
            "profile_id": made.profile.id,
            "features": _features(made, shape),
            "wish": {
                "aim": made.wish.aim.value,
                "max_seconds": made.wish.max_seconds,
                "max_cost": made.wish.max_cost,
                "confidence": made.wish.confidence,
            },
            "promised_seconds": offer.seconds,
            "low_seconds": offer.low_seconds,
            "high_seconds": offer.high_seconds,
            "promised_micros": round(offer.cost * MICROS),
        },
    )
    return replace(made, job=job)


def _features(made: Answer, shape: Shape) -> dict[str, float]:
    """In the words of the profile, so that the comparison can learn from it."""
    found = {**made.priced.arguments, "cpus": shape.cpus, "memory_mb": shape.memory_mb, GPUS: shape.gpus}
    return {name: value for name, value in found.items() if name != GPUS or GPUS in made.priced.model.names}


def _spec(profile: Profile, asked: ProvisionRequest, arguments: Mapping[str, float], shape: Shape) -> JobSpec:
    base: JobSpec = SPEC.validate_python(profile.spec)
    template = parse(profile.template)
    command = template.command({n: arguments[n] for n in template.names})
    return replace(
        base,
        name=f"{profile.name} {' '.join(f'{v:g}' for v in arguments.values())}"[:100].strip(),
        run=shell(command),
        input=asked.input or base.input,
        resources=Resources(shape.cpus, round(shape.memory_mb), shape.gpus),
        tags={**base.tags, "provisioned-by": f"{profile.name}:{profile.version}"},
    )


def estimate(
    tx: Tx, caller: Caller, name: str, asked: ProvisionRequest, shapes: Sequence[Shape]
) -> list[Offer]:
    """What given sizes would take and cost, whether or not the pool has them."""
    profile = fitted(tx, caller, name)
    runtime, memory = models(profile)
    arguments = arguments_of(profile, parse(profile.template), asked)
    gpus = np.array([s.gpus for s in shapes])
    if gpus.any() and GPUS not in runtime.names:
        raise InvalidInput(f"profile {name} was made without GPUs: profile the command with --gpus 0,1")
    grid = Grid(
        np.array([s.cpus for s in shapes]),
        np.array([s.memory_mb for s in shapes]),
        ANY_GPU if gpus.any() else ON_CPU,
        gpus,
    )
    priced = quote(grid, arguments, runtime, memory, book_now(tx), asked.confidence, _waits(tx, grid))
    return [priced.offer(i) for i in range(len(shapes))]


# Afterwards. -------------------------------------------------------------------------------------------------


def compare_promises(store: Store) -> int:
    """For each provisioned job that is over: keep what it took, and learn from it in a new version."""
    with store.read() as tx:
        over = profiles.promises_to_compare(tx)
        known = {row.profile_id: profiles.by_id(tx, row.profile_id) for row in over}
        newest = {p.id: profiles.latest_fitted(tx, p.project_id, p.name) or p for p in known.values()}
    for row in over:
        finished = row.state == JobState.FINISHED and row.usage
        seconds = float(row.usage["wall_seconds"]) if finished else None
        peak = row.usage.get("peak_memory_mb") or None if finished else None
        base = newest[row.profile_id]
        values = None
        if seconds is not None and base.runtime is not None:
            run = ProfiledRun(row.features, Outcome.FINISHED, seconds, peak, row.job_id)
            values = _relearned(base, run)
        with store.write() as tx:
            if not profiles.keep_comparison(tx, row.job_id, seconds, int(row.came_to)):
                continue
            body = {"promised_seconds": row.promised_seconds, "seconds": seconds, "micros": int(row.came_to)}
            tx.emit("promise.compared", row.job_id, project_id=row.project_id, body=body)
            if values is not None:
                made = profiles.add(
                    tx,
                    base.project_id,
                    base.user_id,
                    base.name,
                    base.template,
                    base.spec,
                    base.plan,
                    fitted_at=tx.now,
                    **values,
                )
                newest[row.profile_id] = made
                record_model(tx, made, values["runtime"], [run_from(each) for each in made.runs])
    return len(over)


def _relearned(base: Profile, run: ProfiledRun) -> dict[str, Any] | None:
    runs = [*(run_from(kept) for kept in base.runs), run]
    try:
        model = learn(runs)
    except EaselError:
        return None
    return {
        "state": "fitted",
        "runs": [plain(each) for each in runs],
        "runtime": model.to_json(),
        "memory": base.memory,
    }
