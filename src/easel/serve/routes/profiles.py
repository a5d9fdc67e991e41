"""Profiles, estimates, provisioning."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from fastapi import Path, Query, Response

from easel.declare import job as declare
from easel.declare.verbs import Verb
from easel.errors import InvalidInput
from easel.flow.price import profile as profiling
from easel.flow.price import provision as provisioning
from easel.flow.price.profile import ProfileRequest
from easel.flow.price.provision import ProvisionRequest
from easel.price import grid as grids
from easel.price.picture import draw
from easel.price.profiling import Design
from easel.price.provision import Aim, ChosenOffer, Offer
from easel.records.identity import Caller
from easel.serve.access import Member, State, acts
from easel.serve.creating import Create
from easel.serve.paging import Paging
from easel.serve.router import Router
from easel.serve.routes.jobs import shown as shown_job
from easel.serve.state import Tx
from easel.wire import price as wire
from easel.wire.model import Page

router = Router(prefix="/api/v1/projects/{project}/profiles", tags=["profiles"])

Name = Annotated[str, Path(max_length=100, examples=["mnist"])]
MOST_AHEAD_S = 100 * 365 * 86_400.0
Version = Annotated[int | None, Query(ge=1, le=1_000_000, description="Without it the latest")]


def _request(body: wire.StartProfile) -> ProfileRequest:
    base = declare.JobSpec(
        name=body.name,
        run=profiling.shell(body.template),
        code=body.code,
        input=body.inputs[0] if body.inputs else None,
        output_folder=body.output_folder,
        environment=declare.Environment(**body.environment.model_dump()),
        tags=dict(body.tags),
    )
    return ProfileRequest(
        body.name,
        body.template,
        base,
        tuple(body.inputs),
        tuple(body.cpus),
        tuple(float(m) for m in body.memories_mb),
        tuple(body.gpus),
        Design(body.design),
        body.size,
        body.time_limit_s,
        body.budget,
    )


def shown(tx: Tx, profile: profiling.Profile) -> wire.Profile:
    done = None
    if profile.state == "running":
        done = profiling.runs_ended(tx, profile)
    model = profile.runtime or {}
    return wire.Profile(
        id=profile.id,
        name=profile.name,
        version=profile.version,
        template=profile.template,
        state=profile.state,
        reason=profile.reason,
        plan=dict(profile.plan),
        done=done,
        model=model.get("chosen"),
        left_out=model.get("left_out"),
        runs=[dict(run) for run in profile.runs],
        created_at=profile.created_at,
        fitted_at=profile.fitted_at,
    )


@router.post("/plan", response_model=wire.ProfilePlan)
@acts(Verb.READ)
def plan_profile(state: State, caller: Member, body: wire.StartProfile) -> wire.ProfilePlan:
    """What a profile would run and what it can cost; nothing is submitted."""
    with state.store.read() as tx:
        made = profiling.make_plan(tx, caller, _request(body))
    runs = [
        wire.PlannedRun(
            command=run.command,
            vcpu=run.shape.cpus,
            memory_mb=run.shape.memory_mb,
            gpus=run.shape.gpus,
            most_cost=run.most_cost,
            likely_cost=run.likely_cost,
        )
        for run in made.runs
    ]
    return wire.ProfilePlan(
        runs=runs,
        grid=made.grid_size,
        dropped=made.dropped,
        most_cost=made.most_cost,
        likely_cost=made.likely_cost,
    )


@router.post("", response_model=wire.Profile, status_code=201)
@acts(Verb.RUN)
def start_profile(caller: Member, create: Create, body: wire.StartProfile) -> Response:
    """Submit the runs of a profile; its model is fitted when 95 % of them are done."""

    def make(tx: Tx) -> wire.Profile:
        return shown(tx, profiling.start_profile(tx, caller, _request(body)))

    return create(caller, body, make)


@router.get("", response_model=Page[wire.Profile])
def list_profiles(state: State, caller: Member, page: Paging) -> Page[wire.Profile]:
    """Every version of every profile, newest first."""
    with state.store.read() as tx:
        found = profiling.list_profiles(tx, caller, page)
        return Page(items=[shown(tx, each) for each in found.items], next_cursor=found.next_cursor)


@router.get("/{name}", response_model=wire.Profile)
def show_profile(state: State, caller: Member, name: Name, version: Version = None) -> wire.Profile:
    """One profile: how far it is, its runs, its model."""
    with state.store.read() as tx:
        return shown(tx, profiling.find_profile(tx, caller, name, version))


@router.post("/{name}/estimate", response_model=wire.OfferList)
@acts(Verb.READ)
def estimate(state: State, caller: Member, name: Name, body: wire.EstimateRequest) -> wire.OfferList:
    """What given sizes would take and cost."""
    asked = ProvisionRequest(body.values, Aim.CHEAPEST, confidence=body.confidence)
    shapes = [grids.ResourceShape(shape.vcpu, shape.memory_mb, gpus=shape.gpus) for shape in body.shapes]
    with state.store.read() as tx:
        return wire.OfferList(
            items=[_offer(o, tx.now) for o in provisioning.estimate(tx, caller, name, asked, shapes)]
        )


@router.post("/{name}/provision", response_model=wire.Provisioned, status_code=201)
@acts(Verb.RUN)
def provision(caller: Member, create: Create, name: Name, body: wire.Provision) -> Response:
    """Find the best size within the limits, and submit the job on it."""
    asked = _asked(body)

    def make(tx: Tx) -> wire.Provisioned:
        grid = _grid(tx, caller, name, body)
        do = provisioning.submit_provisioned if body.submit else provisioning.answer
        return _provisioned(do(tx, caller, name, asked, grid), tx.now)

    return create(caller, body, make)


@router.post("/{name}/picture", response_class=Response)
@acts(Verb.READ)
def picture(state: State, caller: Member, name: Name, body: wire.Provision) -> Response:
    """The predicted runtime over the grid as PNG, with the excluded sizes in red."""
    with state.store.read() as tx:
        made = provisioning.answer(tx, caller, name, _asked(body), _grid(tx, caller, name, body))
    return Response(draw(made.priced, made.wish, made.outcome), media_type="image/png")


def _asked(body: wire.Provision) -> ProvisionRequest:
    return ProvisionRequest(
        body.values,
        Aim(body.aim),
        body.max_seconds,
        body.max_cost,
        body.deadline,
        body.confidence,
        body.input,
    )


def _grid(tx: Tx, caller: Caller, name: str, body: wire.Provision) -> grids.Grid | None:
    if body.cpus is None and body.memories_mb is None and body.gpus is None:
        return None
    usual = grids.paper_grid()
    tried = provisioning.gpus_of(provisioning.fitted(tx, caller, name))
    unknown = sorted(set(body.gpus or ()) - set(tried))
    if unknown and tried == (0.0,):
        raise InvalidInput(f"profile {name} was made without GPUs: profile the command with --gpus 0,1")
    return grids.product_grid(
        body.cpus or sorted(set(usual.cpus)),
        body.memories_mb or sorted(set(usual.memory_mb)),
        body.gpus or tried,
    )


def _offer(offer: Offer, now: datetime) -> wire.Offer:
    return wire.Offer(
        vcpu=offer.shape.cpus,
        memory_mb=offer.shape.memory_mb,
        gpus=offer.shape.gpus,
        terms=offer.shape.terms,
        seconds=offer.seconds,
        low_seconds=offer.low_seconds,
        high_seconds=offer.high_seconds,
        cost=offer.cost,
        sure_seconds=offer.sure_seconds,
        wait_seconds=offer.wait_seconds,
        sure_cost=offer.sure_cost,
        per_hour=offer.per_hour,
        extrapolated=list(offer.extrapolated),
        starts_at=_moment(now, offer.wait_seconds),
        ends_by=_moment(now, offer.sure_seconds),
    )


def _moment(now: datetime, seconds: float) -> datetime | None:
    """Returns the moment, or None where that is never, or beyond what a calendar has."""
    return now + timedelta(seconds=seconds) if seconds < MOST_AHEAD_S else None


def _provisioned(made: provisioning.ProvisionAnswer, now: datetime) -> wire.Provisioned:
    label = f"{made.profile.name}:{made.profile.version}"
    front = [_offer(offer, now) for offer in made.front]
    if isinstance(made.outcome, ChosenOffer):
        job = shown_job(made.job) if made.job else None
        return wire.Provisioned(
            profile=label, feasible=True, offer=_offer(made.outcome.offer, now), job=job, front=front
        )
    nearest = [
        wire.Alternative(offer=_offer(way.offer, now), remedy=way.remedy) for way in made.outcome.nearest
    ]
    return wire.Provisioned(profile=label, feasible=False, why=made.outcome.why, nearest=nearest, front=front)
