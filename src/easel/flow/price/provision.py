"""A profiled command is estimated, provisioned, submitted; afterwards the promise is compared with the truth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from easel.declare.job import JobSpec
from easel.declare.resources import Resources, room_told
from easel.errors import Conflict, EaselError, InvalidInput
from easel.flow.budgets import check_admission
from easel.flow.jobs.expected import line_of, queue_as_it_is
from easel.flow.jobs.promises import row_of
from easel.flow.jobs.submit import submit_job
from easel.flow.price.profile import plain, run_from, shell
from easel.flow.price.provenance import record_model
from easel.flow.prices import book_now
from easel.ids import JobId
from easel.price.bill import MICROS
from easel.price.book import TERMS, PriceBook
from easel.price.design import NO_GPU
from easel.price.grid import ANY_GPU, ON_CPU, Grid, ResourceShape, paper_grid
from easel.price.memory import MemoryModel
from easel.price.provision import (
    Aim,
    ChosenOffer,
    Infeasible,
    Offer,
    Quote,
    Wish,
    front,
    provision,
    quote,
    side_by_side,
    worth_choosing,
)
from easel.price.runs import GPUS, Array, Flags, ProfiledRun, RunOutcome
from easel.price.runtime import RuntimeModel, learn
from easel.price.template import CommandTemplate, parse
from easel.records.device import Device
from easel.records.identity import Caller
from easel.records.job import Job, JobState
from easel.run.calibrate import LEVELS, Forecast
from easel.run.forecast import Spread, WaitingJob, expected_start
from easel.store import devices, profiles, promises
from easel.store.engine import Store, Tx
from easel.store.job_specs import SPEC
from easel.store.profiles import Profile

MAX_ACTIVE = 8
"""A user's limit on active jobs where no admin set another."""
PLAYS = 100

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
class ProvisionAnswer:
    """`quote` is the whole grid; `wait_s` what the queue is expected to cost the chosen (or fastest) size."""

    profile: Profile
    wish: Wish
    priced: Quote
    outcome: ChosenOffer | Infeasible
    job: Job | None = None

    @property
    def front(self) -> list[Offer]:
        return worth_choosing(front(self.priced))


def fitted(tx: Tx, caller: Caller, name: str) -> Profile:
    """The newest version with a model; an error says how far a profile without one is."""
    found = profiles.latest_fitted(tx, caller.project_id, name)
    if found is not None:
        return found
    latest = profiles.find(tx, caller.project_id, name)
    if latest.state == "running":
        raise Conflict(f"profile {name} still runs: `easel profiles show {name}` says how far it is")
    raise Conflict(f"profile {name} has no model: {latest.reason}")


def models(profile: Profile) -> tuple[RuntimeModel, MemoryModel]:
    assert profile.runtime is not None
    assert profile.memory is not None
    return RuntimeModel.from_json(profile.runtime), MemoryModel.from_json(profile.memory)


def gpus_of(profile: Profile) -> tuple[float, ...]:
    """The numbers of GPUs that the profile tried."""
    return tuple(sorted({float(run["features"].get(GPUS, 0.0)) for run in profile.runs})) or NO_GPU


def arguments_of(profile: Profile, template: CommandTemplate, asked: ProvisionRequest) -> dict[str, float]:
    values = asked.values
    if isinstance(values, Mapping) and "input_mb" in values:
        size = {"input_mb": float(values["input_mb"])}
        return {**template.values({n: v for n, v in values.items() if n != "input_mb"}), **size}
    return template.values(values)


def answer(
    tx: Tx, caller: Caller, name: str, asked: ProvisionRequest, grid: Grid | None = None
) -> ProvisionAnswer:
    """The best size within the pool for this request, without submitting anything."""
    profile = fitted(tx, caller, name)
    runtime, memory = models(profile)
    arguments = arguments_of(profile, parse(profile.template), asked)
    wish = _wish(asked, tx.now)
    wanted, book = grid or paper_grid(gpus_of(profile)), book_now(tx)
    quotes = {
        label: quote(
            cells,
            arguments,
            runtime,
            memory,
            book.under(label),
            asked.confidence,
            _waits(tx, caller, cells, label),
        )
        for label, cells in within_pool(tx, wanted, book).items()
    }
    priced = side_by_side(list(quotes.values()), list(quotes))
    return ProvisionAnswer(profile, wish, priced, provision(priced, wish))


def _wish(asked: ProvisionRequest, now: datetime) -> Wish:
    limit = asked.max_seconds
    if asked.deadline is not None:
        left = (asked.deadline - now).total_seconds()
        if left <= 0:
            raise InvalidInput("the deadline has passed")
        limit = left if limit is None else min(limit, left)
    return Wish(asked.aim, limit, asked.max_cost, asked.confidence, INDIFFERENCE)


def within_pool(tx: Tx, grid: Grid, book: PriceBook) -> dict[str, Grid]:
    """The cells that some device can hold, by the terms of such devices (empty: those of the book).

    Where no device is known yet, all of them.
    """
    pool = _there(tx)
    if not pool:
        return {"": grid}
    fits: dict[str, Flags] = {}
    for device in pool:
        said = device.labels.get(TERMS, "")
        label, room = said if book.knows(said) else "", device.capacity
        enough = grid.gpu_counts <= len(room.gpus)
        here = (grid.cpus <= room.vcpu + 1e-9) & (grid.memory_mb <= room.memory_mb) & enough
        fits[label] = fits.get(label, np.zeros(len(grid), dtype=bool)) | here
    found = {label: grid.where(ok) for label, ok in sorted(fits.items()) if ok.any()}
    if not found:
        most = max((device.capacity for device in pool), key=lambda room: (len(room.gpus), room.vcpu))
        raise Conflict(
            "no size of the grid fits the pool: its largest device has "
            + room_told(most.vcpu, most.memory_mb, len(most.gpus))
        )
    return found


def _there(tx: Tx) -> list[Device]:
    """Returns the devices that may get work; where none may at the moment, all that are known."""
    known = devices.list_devices(tx)
    return [device for device in known if device.open] or known


def _wants(label: str) -> dict[str, str]:
    """What a job asks for so that it runs under these terms."""
    return {TERMS: label} if label else {}


def _waits(tx: Tx, caller: Caller, grid: Grid, label: str = "") -> Array:
    """`(m, s)` draws of the time until each size starts, were it submitted now behind the caller's other jobs.

    On devices with these terms only, where there are several. The queue is played forward with each job's own spread
    on the devices as they are. Sizes are rounded up to whole cores and to a quarter, a half or all of the largest
    device's memory: those of one class wait alike.
    """
    now = queue_as_it_is(tx, MAX_ACTIVE)
    if not now.devices or not (now.running or now.waiting):
        return np.zeros((len(grid), 1))
    owner = (caller.project_id, caller.user.id)
    now = replace(now, lines=line_of(tx, now, owner, MAX_ACTIVE))
    largest = max(device.capacity.memory_mb for device in now.devices)
    most_cores = max(device.capacity.vcpu for device in now.devices)
    cores = np.minimum(np.maximum(np.ceil(grid.cpus), 0.5), most_cores)
    memory = np.select(
        [grid.memory_mb <= largest / 4, grid.memory_mb <= largest / 2], [largest / 4, largest / 2], largest
    )
    found: dict[tuple[float, float, float], Array] = {}
    waits = []
    for size in zip(cores, memory, grid.gpu_counts, strict=True):
        if size not in found:
            asked = Resources(math.floor(size[0] * 2) / 2, int(max(size[1], 16)), float(size[2]))
            new = WaitingJob(JobId("new"), owner, asked, Spread(0.0), _wants(label))
            found[size] = expected_start(now, new, np.random.default_rng(0), PLAYS).start
        waits.append(found[size])
    return np.array(waits)


def submit_provisioned(
    tx: Tx, caller: Caller, name: str, asked: ProvisionRequest, grid: Grid | None = None
) -> ProvisionAnswer:
    """Choose, submit, and keep the promise. Nothing is submitted when no size will do."""
    made = answer(tx, caller, name, asked, grid)
    if isinstance(made.outcome, Infeasible):
        return made
    offer = made.outcome.offer
    check_admission(tx, caller, round(offer.cost * MICROS))
    shape = offer.shape
    ends = _promised_ends(tx, caller, made, shape)
    job = submit_job(tx, caller, _spec(made.profile, asked, made.priced.arguments, shape))
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
    told = Forecast(offer.wait_seconds, offer.sure_seconds, dict(zip(LEVELS, ends, strict=True)))
    promises.add(tx, [row_of(job.id, caller.project_id, tx.now, told)])
    return replace(made, job=job)


def _promised_ends(tx: Tx, caller: Caller, made: ProvisionAnswer, shape: ResourceShape) -> list[float]:
    """Seconds until the end of wait and run on the chosen size, at each level that promises are kept at."""
    grid, arguments = made.priced.grid, made.priced.arguments
    cell = Grid(np.array([shape.cpus]), np.array([shape.memory_mb]), grid.device, np.array([shape.gpus]))
    (runtime, memory), book = models(made.profile), book_now(tx).under(shape.terms)
    waits = _waits(tx, caller, cell, shape.terms)
    return [
        float(quote(cell, arguments, runtime, memory, book, level, waits).sure_seconds[0])
        for level in LEVELS.values()
    ]


def _features(made: ProvisionAnswer, shape: ResourceShape) -> dict[str, float]:
    """Returns the run's features in the words of the profile, so that the comparison can learn from it."""
    found = {**made.priced.arguments, "cpus": shape.cpus, "memory_mb": shape.memory_mb, GPUS: shape.gpus}
    return {name: value for name, value in found.items() if name != GPUS or GPUS in made.priced.model.names}


def _spec(
    profile: Profile, asked: ProvisionRequest, arguments: Mapping[str, float], shape: ResourceShape
) -> JobSpec:
    base: JobSpec = SPEC.validate_python(profile.spec)
    template = parse(profile.template)
    command = template.command({n: arguments[n] for n in template.names})
    return replace(
        base,
        name=f"{profile.name} {' '.join(f'{v:g}' for v in arguments.values())}"[:100].strip(),
        run=shell(command),
        input=asked.input or base.input,
        resources=Resources(shape.cpus, round(shape.memory_mb), shape.gpus),
        wants={**base.wants, **_wants(shape.terms)},
        tags={**base.tags, "provisioned-by": f"{profile.name}:{profile.version}"},
    )


def estimate(
    tx: Tx, caller: Caller, name: str, asked: ProvisionRequest, shapes: Sequence[ResourceShape]
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
    book = book_now(tx)
    labels = _terms_here(tx, book)
    quotes = [
        quote(
            grid,
            arguments,
            runtime,
            memory,
            book.under(label),
            asked.confidence,
            _waits(tx, caller, grid, label),
        )
        for label in labels
    ]
    priced = side_by_side(quotes, labels)
    return [priced.offer(i) for i in range(len(priced.grid))]


def _terms_here(tx: Tx, book: PriceBook) -> list[str]:
    """Returns the terms of the pool's devices, each once; empty: those of the book."""
    said = {device.labels.get(TERMS, "") for device in _there(tx)} or {""}
    return sorted({label if book.knows(label) else "" for label in said})


# Afterwards. -------------------------------------------------------------------------------------------------


def compare_promises(store: Store) -> int:
    """Keeps what each provisioned job that is over took, and learns from it in a new version of its profile."""
    with store.read() as tx:
        over = profiles.promises_to_compare(tx)
        known = {row.profile_id: profiles.by_id(tx, row.profile_id) for row in over}
        newest = {p.id: profiles.latest_fitted(tx, p.project_id, p.name) or p for p in known.values()}
    for row in over:
        usage = row.usage if row.state == JobState.FINISHED else None
        seconds = float(usage["wall_seconds"]) if usage else None
        peak = usage.get("peak_memory_mb") or None if usage else None
        base = newest[row.profile_id]
        values = None
        if seconds is not None and base.runtime is not None:
            run = ProfiledRun(row.features, RunOutcome.FINISHED, seconds, peak, row.job_id)
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
