"""Profiles from their start to a model, on both databases; the runs end as the test says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

import pytest

from easel.declare.job import Command, JobSpec
from easel.declare.resources import Room
from easel.declare.roles import Role
from easel.errors import Conflict, QuotaExhausted
from easel.flow.budgets import set_budget
from easel.flow.lake.file_set import create_of
from easel.flow.lake.find import find
from easel.flow.lake.trace import trace
from easel.flow.price import provision as provisioning
from easel.flow.price.profile import ProfileRequest, start_profile, watch_profiles
from easel.flow.price.provision import ProvisionRequest
from easel.flow.prices import draw_bill, price_history, set_prices
from easel.ids import TokenId
from easel.price.book import book_named
from easel.price.budget import Budget
from easel.price.grid import ResourceShape
from easel.price.provision import Aim, ChosenOffer, Offer
from easel.records.attempt import EndReason
from easel.records.device import LABEL
from easel.records.identity import Caller
from easel.records.job import Usage
from easel.records.lake import Kind
from easel.store import devices, identity, jobs, profiles
from easel.store.engine import Store
from easel.store.lake.lineage import TraceDirection
from easel.store.profiles import Profile

ASKED = ProfileRequest(
    "mnist",
    "python train.py --epoch {1,2,5} --batch-size {256,1024}",
    JobSpec(name="mnist", run=Command(("true",))),
    size=20,
)
Ending = Callable[[dict[str, float]], dict[str, Any] | None]


@pytest.fixture
def ana(store: Store) -> Caller:
    with store.write() as tx:
        project = identity.add_project(tx, "astro", "")
        user = identity.add_user(tx, "ana", home=project.id)
        identity.put_member(tx, project.id, user.id, Role.MEMBER)
    return Caller(user, TokenId("tok"), project, Role.MEMBER)


def finished(cell: dict[str, float]) -> dict[str, Any]:
    """The paper's law, and a peak that the batch size sets."""
    usage = Usage(1.0, 100.0 + cell["batch-size"] / 10, 30.0 * cell["epoch"] / cell["cpus"])
    return {"state": "finished", "usage": asdict(usage)}


def start(store: Store, ana: Caller) -> Profile:
    with store.write() as tx:
        return start_profile(tx, ana, ASKED)


def end(store: Store, profile: Profile, ending: Ending) -> None:
    """Give each run its end; None leaves it going."""
    with store.write() as tx:
        runs = profiles.runs_of(tx, profile.id)
        rows = jobs.rows(tx, [run.job_id for run in runs])
        for run in runs:
            if (values := ending(run.features)) is not None:
                jobs.change(tx, [(rows[run.job_id], {**values, "ended_at": tx.now})])


def latest(store: Store, ana: Caller) -> Profile:
    with store.read() as tx:
        return profiles.find(tx, ana.project_id, "mnist")


def test_a_profile_is_fitted_when_its_runs_are_done(store: Store, ana: Caller) -> None:
    profile = start(store, ana)
    assert watch_profiles(store) == 0
    end(store, profile, finished)
    assert watch_profiles(store) == 1
    assert watch_profiles(store) == 0
    fitted = latest(store, ana)
    assert fitted.state == "fitted"
    assert len(fitted.runs) == 20
    asked = ProvisionRequest([20, 256], Aim.CHEAPEST, max_seconds=400)
    with store.read() as tx:
        made = provisioning.answer(tx, ana, "mnist", asked)
    assert isinstance(made.outcome, ChosenOffer)
    assert made.outcome.offer.seconds == pytest.approx(600 / made.outcome.offer.shape.cpus, rel=0.1)


def test_the_last_twentieth_is_not_waited_for(store: Store, ana: Caller) -> None:
    profile = start(store, ana)
    going: list[dict[str, float]] = []

    def all_but_one(cell: dict[str, float]) -> dict[str, Any] | None:
        going.append(cell)
        return None if len(going) == 1 else finished(cell)

    end(store, profile, all_but_one)
    assert watch_profiles(store) == 1
    with store.read() as tx:
        states = [run.state for run in profiles.runs_of(tx, profile.id)]
    assert states.count("killed") == 1
    assert latest(store, ana).state == "fitted"
    assert [run["outcome"] for run in latest(store, ana).runs].count("straggler") == 1


def test_running_out_of_memory_becomes_a_floor(store: Store, ana: Caller) -> None:
    def too_little(cell: dict[str, float]) -> dict[str, Any]:
        if cell["memory_mb"] == 512 and cell["batch-size"] == 1024:
            return {"state": "failed", "end_reason": EndReason.MEMORY_LIMIT.value, "reason": "no memory"}
        return finished(cell)

    end(store, start(store, ana), too_little)
    watch_profiles(store)
    for batch, least in ((256, 512), (1024, 768)):
        with store.read() as tx:
            made = provisioning.answer(tx, ana, "mnist", ProvisionRequest([5, batch], Aim.CHEAPEST))
        assert isinstance(made.outcome, ChosenOffer)
        assert made.outcome.offer.shape.memory_mb == least


def test_a_profile_whose_runs_all_failed_says_so(store: Store, ana: Caller) -> None:
    end(store, start(store, ana), lambda _: {"state": "failed", "reason": "exit code 1"})
    watch_profiles(store)
    assert latest(store, ana).state == "failed"
    assert "no profiling run finished (20 failed)" in (latest(store, ana).reason or "")
    with store.read() as tx, pytest.raises(Conflict, match="has no model"):
        provisioning.answer(tx, ana, "mnist", ProvisionRequest([5, 256], Aim.CHEAPEST))


def test_a_promise_is_compared_and_learned_from_once(store: Store, ana: Caller) -> None:
    end(store, start(store, ana), finished)
    watch_profiles(store)
    with store.write() as tx:
        made = provisioning.submit_provisioned(
            tx, ana, "mnist", ProvisionRequest({"epoch": 50, "batch-size": 256}, Aim.FASTEST, max_cost=1.0)
        )
    assert made.job is not None
    assert provisioning.compare_promises(store) == 0
    with store.write() as tx:
        row = jobs.rows(tx, [made.job.id])[made.job.id]
        took = {"state": "finished", "usage": asdict(Usage(1.0, 120.0, 700.0)), "ended_at": tx.now}
        jobs.change(tx, [(row, took)])
    assert provisioning.compare_promises(store) == 1
    assert provisioning.compare_promises(store) == 0
    with store.read() as tx:
        promise = profiles.promise_of(tx, ana.project_id, made.job.id)
    assert promise is not None
    assert promise.seconds == 700.0
    assert latest(store, ana).version == 2
    assert latest(store, ana).runs[-1]["job"] == made.job.id


def test_spot_and_on_demand_devices_are_one_choice_and_each_is_billed_by_its_terms(
    store: Store, ana: Caller
) -> None:
    end(store, start(store, ana), finished)
    watch_profiles(store)
    with store.write() as tx:
        for name, terms in (("cloud-a", "spot"), ("cloud-b", "on-demand")):
            devices.seen(tx, name, "remote", Room(8.0, 16_384), {f"{LABEL}terms": terms})
        set_prices(tx, replace(ana, user=replace(ana.user, platform_admin=True)), book_named("n1-mixed"))

    def asked(seconds: float) -> Offer:
        wish = ProvisionRequest({"epoch": 900, "batch-size": 256}, Aim.CHEAPEST, seconds, confidence=0.95)
        with store.write() as tx:
            made = provisioning.submit_provisioned(tx, ana, "mnist", wish)
            assert isinstance(made.outcome, ChosenOffer)
            assert made.job is not None
            assert made.job.spec.wants == {"terms": made.outcome.offer.shape.terms}
            spec = asdict(made.job.spec)
            bill = draw_bill(spec, tx.now, tx.now + timedelta(hours=1), price_history(tx))
        assert bill.lines[0].per_hour == pytest.approx(made.outcome.offer.per_hour, rel=1e-6)
        return made.outcome.offer

    loose = asked(10**7)
    assert loose.shape.terms == "spot"
    with store.read() as tx:
        offers = provisioning.estimate(
            tx,
            ana,
            "mnist",
            ProvisionRequest([900, 256], Aim.FASTEST, confidence=0.95),
            [ResourceShape(8.0, 8192.0)],
        )
    by_terms = {one.shape.terms: one for one in offers}
    assert by_terms["spot"].sure_seconds > by_terms["on-demand"].sure_seconds
    assert by_terms["spot"].cost < by_terms["on-demand"].cost
    middle = (by_terms["spot"].sure_seconds + by_terms["on-demand"].sure_seconds) / 2
    assert asked(middle).shape.terms == "on-demand"


def test_a_budget_that_the_estimate_would_break_refuses_the_job(store: Store, ana: Caller) -> None:
    end(store, start(store, ana), finished)
    watch_profiles(store)
    with store.write() as tx:
        set_budget(tx, ana, Budget(1_000))
    asked = ProvisionRequest([1000, 256], Aim.CHEAPEST)
    with store.write() as tx, pytest.raises(QuotaExhausted, match="expected to cost"):
        provisioning.submit_provisioned(tx, ana, "mnist", asked)


def test_each_version_of_a_model_is_in_the_provenance_graph_with_its_runs(store: Store, ana: Caller) -> None:
    with store.write() as tx:
        profile = start_profile(tx, ana, ASKED)
        outputs = {}
        for run in profiles.runs_of(tx, profile.id):
            row = jobs.rows(tx, [run.job_id])[run.job_id]
            made = create_of(tx, ana, f"{run.job_id}-output", iter(()), made_by=row.artifact_id)
            outputs[str(made)] = run.job_id
            jobs.change(tx, [(row, {"output_id": made.artifact.id, "output_set": str(made)})])
    end(store, profile, finished)
    watch_profiles(store)
    with store.read() as tx:
        graph = trace(tx, ana, "profile-mnist", TraceDirection.BACKWARD)
        ((found, values),) = find(tx, ana, Kind.FILE_SET, "profile = mnist:1").items
    assert (found.name, values["runs"]) == ("profile-mnist", 20.0)
    names = {number: f"{node.name}:{node.version}" for number, node in graph.nodes.items()}
    assert {names[edge.source] for edge in graph.edges} == set(outputs)
    assert len(graph.edges) == 20


def test_a_model_is_fitted_though_its_owner_has_left(store: Store, ana: Caller) -> None:
    end(store, start(store, ana), finished)
    with store.write() as tx:
        identity.remove_member(tx, ana.project_id, ana.user.id)
    assert watch_profiles(store) == 1
    assert latest(store, ana).state == "fitted"
