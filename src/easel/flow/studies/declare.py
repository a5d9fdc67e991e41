"""A study is declared, started, stopped, resumed, deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from easel.declare.goal import parse_goal
from easel.declare.job import Trial
from easel.declare.names import slug
from easel.declare.resources import room_told
from easel.declare.roles import Role
from easel.declare.study import StudySpec, provisioned
from easel.errors import Conflict, Denied, InvalidInput
from easel.flow.jobs import files
from easel.flow.jobs.control import kill_job
from easel.flow.studies.measure import BY_STUDY
from easel.flow.studies.prices import with_book_rates
from easel.flow.studies.uses import check_uses, is_word_in
from easel.lake.blobs.store import BlobStore
from easel.records.attempt import EndReason
from easel.records.identity import Caller
from easel.records.study import Observation, StoredStudy, StudyState
from easel.store import devices, studies
from easel.store.engine import Tx
from easel.tune.tuner import Tuner

MOST = {
    "horizon": 2,
    "trees": 50,
    "paths": 256,
    "representatives": 500,
    "draws": 1024,
    "nodes": 9,
    "per_float": 50,
}
"""Of the options that make a strategy think longer."""


def create_study(
    tx: Tx,
    caller: Caller,
    name: str,
    spec: StudySpec,
    *,
    earlier: Sequence[str] = (),
    start: bool = True,
    blobs: BlobStore | None = None,
) -> StoredStudy:
    """Check all that can be checked before anything runs, pin code and input, and remember it.

    `earlier`: studies of this project whose results are a warm start. `blobs` are looked at for what the code reads.
    """
    slug(name, "study")
    if isinstance(spec.job.run, Trial):
        raise InvalidInput("a study tunes a command or an entry point of your own code")
    _is_modest(spec)
    spec = with_book_rates(tx, _pinned(tx, caller, spec))
    _fits_the_pool(tx, spec)
    code = files.files_of(tx, caller, spec.job.code) if blobs is not None else ()
    check_uses(spec, lambda word: blobs is None or is_word_in(word, code, blobs))
    known = [o for other in earlier for o in _observations(tx, studies.find(tx, caller.project_id, other))]
    Tuner(spec.space, spec.goal, spec.strategy, seed=spec.seed, options=spec.options, earlier=known)
    state = StudyState.RUNNING if start else StudyState.CREATED
    study = studies.add(tx, caller.project_id, caller.user.id, name, spec, known, state)
    body = {"name": name, "strategy": spec.strategy, "goal": spec.goal.to_dict(), "started": start}
    tx.emit("study.created", study.id, project_id=caller.project_id, actor=caller.user.id, body=body)
    return study


def _pinned(tx: Tx, caller: Caller, spec: StudySpec) -> StudySpec:
    """Every point reads the same versions, whatever is uploaded meanwhile."""
    job = spec.job
    code = None if job.code is None else files.pin_code(tx, caller, job.code).reference
    data = None if job.input is None else str(files.pin_set(tx, caller, job.input))
    return replace(spec, job=replace(job, code=code, input=data))


def _is_modest(spec: StudySpec) -> None:
    """Everybody's studies think in one loop: none may ask for hours of it."""
    for name, most in MOST.items():
        value = spec.options.get(name)
        if isinstance(value, int | float) and value > most:
            raise InvalidInput(f"option {name} may be at most {most} on a shared server, not {value}")


def _fits_the_pool(tx: Tx, spec: StudySpec) -> None:
    pool = devices.largest(tx)
    if pool is None:
        return
    most = {d.name: max(float(v) for v in d.levels(2)) for d in spec.space.resources if _is_amount(d.name)}
    wanted = provisioned(spec.job.resources, most)
    if not pool.fits(wanted):
        raise InvalidInput(
            f"no device can hold the largest point ({room_told(wanted.vcpu, wanted.memory_mb, wanted.gpus)}): "
            f"the largest device has {room_told(pool.vcpu, pool.memory_mb, len(pool.gpus))}"
        )


def _is_amount(name: str) -> bool:
    return name in ("vcpu", "memory_mb", "gpus")


def _observations(tx: Tx, study: StoredStudy) -> list[Observation]:
    ended = [p for p in studies.points(tx, study.id) if p.told is not None]
    return [replace(p.observation, number=None) for p in sorted(ended, key=lambda p: p.told or 0)]


def start_study(
    tx: Tx, caller: Caller, name: str, *, budget: Mapping[str, float] | None = None
) -> StoredStudy:
    """Start it, or go on with one that was stopped or has ended; `budget` sets another total."""
    study = may_change(tx, caller, name)
    spec = study.spec
    if budget is not None:
        goal = parse_goal({**spec.goal.to_dict(), "budget": dict(budget)})
        spec = replace(spec, goal=goal)
    elif study.state is StudyState.FINISHED:
        raise Conflict(
            f"study {study.name} has ended ({study.reason}): resume it with a larger budget, or start a new one "
            "with `earlier` naming this one"
        )
    if study.state is StudyState.RUNNING and budget is None:
        return study
    _change(
        tx, caller, study, "study.started", state=StudyState.RUNNING.value, reason=None, spec=spec.to_dict()
    )
    return studies.find(tx, caller.project_id, name)


def stop_study(tx: Tx, caller: Caller, name: str) -> StoredStudy:
    """Stops a study: no new points, running ones are ended and count as stopped. It can be resumed."""
    study = may_change(tx, caller, name)
    if study.state not in (StudyState.RUNNING, StudyState.CREATED):
        return study
    reason = f"stopped by {caller.user.name}"
    _kill_points(tx, caller, study, reason)
    _change(tx, caller, study, "study.stopped", state=StudyState.STOPPED.value, reason=reason)
    return studies.find(tx, caller.project_id, name)


def _kill_points(tx: Tx, caller: Caller, study: StoredStudy, reason: str) -> None:
    open_points = [point.job_id for point in studies.points(tx, study.id) if point.outcome is None]
    for job_id in sorted(job_id for job_id in open_points if job_id is not None):  # locked in this order
        kill_job(tx, caller, job_id, f"{BY_STUDY}{reason}", EndReason.BY_STUDY)


def delete_study(tx: Tx, caller: Caller, name: str) -> None:
    """Deletes a study; its jobs and file sets stay in the history."""
    study = may_change(tx, caller, name)
    _kill_points(tx, caller, study, "it was deleted")
    studies.remove(tx, study.id)
    body = {"name": study.name}
    tx.emit("study.deleted", study.id, project_id=caller.project_id, actor=caller.user.id, body=body)


def may_change(tx: Tx, caller: Caller, name: str) -> StoredStudy:
    study = studies.find(tx, caller.project_id, name)
    if study.user_id != caller.user.id and caller.role is not Role.ADMIN:
        raise Denied("only its owner or an admin of the project may change a study")
    return study


def _change(tx: Tx, caller: Caller, study: StoredStudy, kind: str, **values: object) -> None:
    if not studies.touch(tx, study, **values):
        raise Conflict(f"study {study.name} was changed at the same moment: try again")
    body = {"name": study.name, "reason": values.get("reason")}
    tx.emit(kind, study.id, project_id=caller.project_id, actor=caller.user.id, body=body)
