"""Simulations: what other policies and pool sizes would have done."""

from __future__ import annotations

from easel.declare.verbs import Verb
from easel.flow import pool_sizes as sizes
from easel.flow import simulate as flow
from easel.flow.happiness import happiness
from easel.flow.simulate import Past
from easel.schedule.policies import POLICIES
from easel.schedule.replay import ReplaySettings
from easel.serve.access import Member, PlatformAdmin, SignedIn, State, acts
from easel.serve.router import Router
from easel.wire import simulation as wire

router = Router(prefix="/api/v1", tags=["simulations"])


@router.get("/policies", response_model=wire.PolicyNames)
def list_policies(caller: SignedIn) -> wire.PolicyNames:
    """The policies that can be simulated, the pool's own first."""
    return wire.PolicyNames(items=list(POLICIES))


@router.get("/projects/{project}/happiness", response_model=wire.Happiness)
def show_happiness(state: State, caller: Member) -> wire.Happiness:
    """The best score of each app over time."""
    with state.store.read() as tx:
        return wire.Happiness.model_validate(happiness(tx, caller))


@router.post("/pool/sizes", response_model=wire.PoolAdvice)
@acts(Verb.READ)
def compare_pool_sizes(state: State, caller: PlatformAdmin, body: wire.PoolSizes) -> wire.PoolAdvice:
    """Compare the pool with larger ones: queue times, money and a recommendation, from all projects' history."""
    with state.store.read() as tx:
        past = sizes.past_of_pool(tx, body.days, body.per_hour)
    return wire.PoolAdvice.model_validate(sizes.advise(past, body.more))


@router.post("/projects/{project}/simulations", response_model=wire.Simulated)
@acts(Verb.READ)
def simulate(state: State, caller: Member, body: wire.Simulate) -> wire.Simulated:
    """Replay the project's history (or another one) under policies and pool sizes. Nothing runs or is kept."""
    if body.history is None:
        with state.store.read() as tx:
            past = flow.history(tx, caller)
    else:
        past = [Past(row.tenant, row.candidate, row.quality, row.cost) for row in body.history]
    plan = ReplaySettings(
        tuple(body.policies),
        tuple(body.devices),
        body.serve,
        body.share,
        body.repetitions,
        body.seed,
        body.failures,
        body.cost_noise,
    )
    return wire.Simulated.model_validate(flow.simulate(past, plan))
