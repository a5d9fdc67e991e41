"""A command is profiled: a plan, the jobs of the plan, and a model when enough of them are done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from easel.declare.job import Command, JobSpec
from easel.declare.page import PageRequest
from easel.declare.resources import Resources
from easel.errors import EaselError, InvalidInput
from easel.flow.budgets import check_admission
from easel.flow.jobs import files
from easel.flow.jobs.control import kill_job
from easel.flow.jobs.people import Owners
from easel.flow.jobs.submit import Submission, submit_jobs
from easel.flow.price.provenance import record_model
from easel.flow.prices import book_now
from easel.price.bill import MICROS
from easel.price.design import CPUS, MEMORIES_MB, NO_GPU
from easel.price.memory import learn_memory
from easel.price.profiling import Design, FitNow, PlannedRun, ProfilePlan, RunState, plan, progress
from easel.price.runs import ProfiledRun, RunOutcome
from easel.price.runtime import RuntimeModel, learn
from easel.price.template import parse
from easel.records.attempt import EndReason
from easel.records.identity import Caller
from easel.records.job import TERMINAL, JobState
from easel.store import profiles
from easel.store.engine import Store, Tx
from easel.store.job_specs import SPEC
from easel.store.paging import Page
from easel.store.profiles import Profile as Profile
from easel.store.profiles import RunOfProfile


@dataclass(frozen=True)
class ProfileRequest:
    """`base` is the job without its command and resources; `inputs` are file sets of different sizes to try."""

    name: str
    template: str
    base: JobSpec
    inputs: tuple[str, ...] = ()
    cpus: tuple[float, ...] = CPUS
    memories_mb: tuple[float, ...] = MEMORIES_MB
    gpus: tuple[float, ...] = NO_GPU
    design: Design = Design.OPTIMAL
    size: int | None = None
    time_limit_s: float = 600.0
    budget: float | None = None


def find_profile(tx: Tx, caller: Caller, name: str, version: int | None = None) -> Profile:
    """Returns a version of a profile of the caller's project, or the latest."""
    return profiles.find(tx, caller.project_id, name, version)


def list_profiles(tx: Tx, caller: Caller, page: PageRequest) -> Page[Profile]:
    """Returns every version of every profile of the project, newest first."""
    return profiles.list_profiles(tx, caller.project_id, page)


def runs_ended(tx: Tx, profile: Profile) -> int:
    """Returns how many of the profile's runs are over, well or not."""
    return sum(JobState(row.state) in TERMINAL for row in profiles.runs_of(tx, profile.id))


def make_plan(tx: Tx, caller: Caller, asked: ProfileRequest) -> ProfilePlan:
    """The runs and what they will cost, before anything is run."""
    earlier = profiles.latest_fitted(tx, caller.project_id, asked.name)
    return plan(
        parse(asked.template),
        book_now(tx),
        asked.time_limit_s,
        cpus=asked.cpus,
        memories_mb=asked.memories_mb,
        gpus=asked.gpus,
        inputs_mb=list(_sizes(tx, caller, asked.inputs)),
        design=asked.design,
        size=asked.size,
        budget=asked.budget,
        earlier=RuntimeModel.from_json(earlier.runtime) if earlier and earlier.runtime else None,
    )


def _sizes(tx: Tx, caller: Caller, inputs: Sequence[str]) -> dict[float, str]:
    """MB of each input file set, to the set."""
    sizes = {max(files.pin_set(tx, caller, name).artifact.size, 1) / 2**20: name for name in inputs}
    if len(sizes) < len(inputs):
        raise InvalidInput("two of the inputs are equally large: a profile learns from inputs that differ")
    return sizes


def start_profile(tx: Tx, caller: Caller, asked: ProfileRequest) -> Profile:
    """Submit the planned runs and remember what they are for."""
    made = make_plan(tx, caller, asked)
    check_admission(tx, caller, round((made.likely_cost or 0.0) * MICROS))
    sizes = _sizes(tx, caller, asked.inputs)
    spec = SPEC.dump_python(asked.base, mode="json")
    summary = {
        "runs": len(made.runs),
        "grid": made.grid_size,
        "design": asked.design.value,
        "most_cost": made.most_cost,
        "likely_cost": made.likely_cost,
        "dropped": made.dropped,
    }
    profile = profiles.add(tx, caller.project_id, caller.user.id, asked.name, asked.template, spec, summary)
    wanted = [Submission(_run_spec(asked, profile, run, sizes)) for run in made.runs]
    jobs = submit_jobs(tx, caller, wanted)
    runs = [(job.id, run.features) for job, run in zip(jobs, made.runs, strict=True)]
    profiles.add_runs(tx, profile.id, runs)
    body = {"name": profile.name, "version": profile.version, "runs": len(runs)}
    tx.emit("profile.started", profile.id, project_id=caller.project_id, actor=caller.user.id, body=body)
    return profile


def _run_spec(
    asked: ProfileRequest, profile: Profile, run: PlannedRun, sizes: Mapping[float, str]
) -> JobSpec:
    chosen = sizes.get(run.features.get("input_mb", 0.0)) or next(iter(sizes.values()), asked.base.input)
    return replace(
        asked.base,
        name=f"profile {asked.name}"[:100],
        run=shell(run.command),
        input=chosen,
        output_set=None,
        resources=Resources(run.shape.cpus, round(run.shape.memory_mb), run.shape.gpus),
        time_limit_s=asked.time_limit_s,
        tags={**asked.base.tags, "profile": f"{profile.name}:{profile.version}"},
    )


def shell(command: str) -> Command:
    """Templates are written as people type them, with variables and quotes."""
    return Command(("/bin/sh", "-c", command))


# When runs end. ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Ready:
    profile: Profile
    runs: tuple[ProfiledRun, ...]
    stragglers: tuple[str, ...] = field(default=())


def watch_profiles(store: Store) -> int:
    """Fit what is ready; returns how many profiles came to an end. Fitting happens outside any transaction."""
    with store.read() as tx:
        ready = [found for profile in profiles.running(tx) if (found := _ready(tx, profile))]
    for found in ready:
        values = _fitted(store, found)
        with store.write() as tx:
            profile = found.profile
            if not profiles.settle(tx, profile.id, fitted_at=tx.now, **values):
                continue
            if values["state"] == "fitted":
                record_model(tx, profile, values["runtime"], found.runs)
            _kill_stragglers(tx, found)
            body = {"name": found.profile.name, "version": found.profile.version, "reason": values["reason"]}
            project_id = found.profile.project_id
            tx.emit(f"profile.{values['state']}", found.profile.id, project_id=project_id, body=body)
    return len(ready)


def _ready(tx: Tx, profile: Profile) -> _Ready | None:
    rows = profiles.runs_of(tx, profile.id)
    over = {row.job_id: JobState(row.state) in TERMINAL for row in rows}
    answer = progress({job: RunState.DONE if done else RunState.GOING for job, done in over.items()})
    if not isinstance(answer, FitNow):
        return None
    return _Ready(profile, tuple(run_of(row) for row in rows), answer.stragglers)


def run_of(row: RunOfProfile) -> ProfiledRun:
    """What a job teaches. Jobs that people killed teach nothing, like those still going."""
    usage = row.usage or {}
    seconds, peak = float(usage.get("wall_seconds", 0.0)), usage.get("peak_memory_mb") or None
    match JobState(row.state):
        case JobState.FINISHED:
            outcome = RunOutcome.FINISHED
        case JobState.FAILED if row.end_reason == EndReason.MEMORY_LIMIT:
            outcome = RunOutcome.OUT_OF_MEMORY
        case JobState.FAILED:
            outcome = RunOutcome.FAILED
        case _:
            outcome = RunOutcome.STRAGGLER
    return ProfiledRun(row.features, outcome, seconds, peak, row.job_id)


def _fitted(store: Store, found: _Ready) -> dict[str, Any]:
    """The columns of a profile that came to its end: with a model, or with the reason why there is none."""
    with store.read() as tx:
        before = profiles.latest_fitted(tx, found.profile.project_id, found.profile.name)
    earlier = RuntimeModel.from_json(before.runtime) if before and before.runtime else None
    kept = {"runs": [plain(run) for run in found.runs], "memory": learn_memory(found.runs).to_json()}
    try:
        model = learn(found.runs, earlier)
    except EaselError as error:
        return {**kept, "state": "failed", "reason": error.message}
    return {**kept, "state": "fitted", "reason": None, "runtime": model.to_json()}


def plain(run: ProfiledRun) -> dict[str, Any]:
    return {**asdict(run), "features": dict(run.features), "outcome": run.outcome.value}


def run_from(data: Mapping[str, Any]) -> ProfiledRun:
    return ProfiledRun(**{**data, "outcome": RunOutcome(data["outcome"])})


def _kill_stragglers(tx: Tx, found: _Ready) -> None:
    if not found.stragglers:
        return
    owner = Owners(tx).caller(found.profile.project_id, found.profile.user_id)
    for job in found.stragglers:
        kill_job(tx, owner, job, "95 % of the profile's runs are done: the rest are not waited for")
