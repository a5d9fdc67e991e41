"""The fair share and the live queue, on a database whose clock stands still until told."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from easel.declare.job import Command, JobSpec, Trial
from easel.declare.resources import Resources, Room
from easel.declare.roles import Role
from easel.errors import InvalidInput, NotFound
from easel.flow.jobs.launch import Launcher
from easel.flow.jobs.orders import OrderLimits
from easel.flow.jobs.shares import (
    charge,
    keep_for_apps,
    kept_for_apps,
    set_share,
    set_share_of,
    shares_of,
)
from easel.flow.jobs.submit import submit_job
from easel.ids import TokenId
from easel.records.identity import Caller
from easel.records.job import Job
from easel.run.queue import launch_room
from easel.run.secret_store import SecretStore
from easel.store import devices, identity, jobs, shares
from easel.store.engine import Store
from easel.testing.clock import FakeClock


@pytest.fixture(autouse=True)
def clock(store: Store) -> FakeClock:
    made = FakeClock(datetime(2026, 5, 1, 12, tzinfo=UTC))
    store.clock = made
    return made


@pytest.fixture
def launcher(store: Store, tmp_path: Path) -> Launcher:
    return Launcher(store, SecretStore(tmp_path / "secrets"), OrderLimits(), 8, 256)


def people(store: Store, *names: str) -> list[Caller]:
    with store.write() as tx:
        project = identity.add_project(tx, "lab", "")
        found = []
        for name in names:
            user = identity.add_user(tx, name, home=project.id, platform_admin=name == "root")
            identity.put_member(tx, project.id, user.id, Role.ADMIN)
            found.append(Caller(user, TokenId("tok_test"), project, Role.ADMIN))
    return found


def submit(store: Store, who: Caller, count: int, **fields: object) -> list[Job]:
    spec = JobSpec(name="test", run=Command(("true",)), resources=Resources(1.0, 512))
    with store.write() as tx:
        return [submit_job(tx, who, replace(spec, **fields)) for _ in range(count)]  # type: ignore[arg-type]


def connect(store: Store, name: str = "here", cores: float = 2.0, **labels: str) -> None:
    with store.write() as tx:
        devices.seen(tx, name, "local", Room(cores, 4096), {f"label {k}": v for k, v in labels.items()})


def launched(launcher: Launcher) -> set[str]:
    return {order.job_id for order in launcher.launch("here", lambda tx: None)}


def test_what_no_connected_devices_can_hold_waits_in_the_queue_and_holds_no_slot(
    store: Store, launcher: Launcher
) -> None:
    connect(store)
    connect(store, "second", site="north")
    with store.write() as tx:
        devices.away(tx, "second")
    (ana,) = people(store, "ana")
    pairs = submit(store, ana, 8, workers=2)
    elsewhere = submit(store, ana, 1, wants={"site": "north"})
    usual = submit(store, ana, 3)
    assert launched(launcher) == {job.id for job in usual}
    connect(store, "second", site="north")
    assert launched(launcher) == {job.id for job in (*pairs, *elsewhere)[:5]}


def test_who_used_less_of_the_pool_goes_first(store: Store, launcher: Launcher, clock: FakeClock) -> None:
    ana, bob = people(store, "ana", "bob")
    launcher = replace(launcher, buffer=4)
    with store.write() as tx:
        charge(tx, {(ana.project_id, ana.user.id): 1000.0})
    heavy, light = submit(store, ana, 4), submit(store, bob, 4)
    assert launched(launcher) == {job.id for job in light}
    with store.read() as tx:
        assert {row.state for row in jobs.rows(tx, [job.id for job in heavy]).values()} == {"queued"}


def test_weights_and_priorities_are_admins_words(store: Store, launcher: Launcher) -> None:
    ana, bob, root = people(store, "ana", "bob", "root")
    launcher = replace(launcher, buffer=3)
    with store.write() as tx:
        set_share(tx, ana, bob.user.id, weight=2.0)
        with pytest.raises(InvalidInput, match="above 0"):
            set_share(tx, ana, bob.user.id, weight=0.0)
        with pytest.raises(InvalidInput, match="platform admin"):
            set_share(tx, ana, None, weight=2.0)
        set_share(tx, root, None, weight=2.0)
    of_ana, of_bob = submit(store, ana, 3), submit(store, bob, 3)
    chosen = launched(launcher)
    assert (len(chosen & {j.id for j in of_ana}), len(chosen & {j.id for j in of_bob})) == (1, 2)


def test_usage_fades_as_it_is_charged(store: Store, clock: FakeClock) -> None:
    (ana,) = people(store, "ana")
    owner = (ana.project_id, ana.user.id)
    with store.write() as tx:
        charge(tx, {owner: 100.0}, half_life_s=3600.0)
    clock.advance(3600.0)
    with store.write() as tx:
        charge(tx, {owner: 10.0}, half_life_s=3600.0)
        assert shares.accounts(tx)[owner].usage == pytest.approx(60.0)


def test_long_jobs_leave_the_queue_as_cores_are_free_and_short_ones_ahead_of_time() -> None:
    assert launch_room(256, launching=0, cores=2.0, busy=2.0, typical_s=30.0) == 0
    assert launch_room(256, launching=0, cores=2.0, busy=1.5, typical_s=30.0) == 1
    assert launch_room(256, launching=0, cores=2.0, busy=2.0, typical_s=0.1) == 20
    assert launch_room(256, launching=6, cores=0.0, busy=0.0, typical_s=30.0) == 250
    assert launch_room(4, launching=6, cores=8.0, busy=0.0, typical_s=0.01) == 0


def trial(**arguments: object) -> Trial:
    return Trial("easel.flow.apps.trial:learn", arguments)


def test_apps_get_the_share_that_is_kept_for_them_before_jobs_with_a_better_claim(
    store: Store, launcher: Launcher
) -> None:
    ana, bob, root = people(store, "ana", "bob", "root")
    connect(store, cores=4.0)
    with store.write() as tx:
        charge(tx, {(ana.project_id, ana.user.id): 1e6})
    jobs_of_bob = submit(store, bob, 8)
    behind = submit(store, ana, 6)
    trials = submit(store, ana, 4, run=trial())
    launcher = replace(launcher, buffer=4)
    with store.write() as tx:
        with pytest.raises(InvalidInput, match="from 0"):
            keep_for_apps(tx, root, 1.5)
        keep_for_apps(tx, root, 0.5)
        assert kept_for_apps(tx) == 0.5
    chosen = launched(launcher)
    assert {job.id for job in trials[:2]} <= chosen, "half of four cores, before her own older jobs"
    assert chosen.isdisjoint(job.id for job in (*behind, *trials[2:]))
    assert len(chosen & {job.id for job in jobs_of_bob}) == 2
    with store.write() as tx:
        keep_for_apps(tx, root, 0.0)
    more = launched(replace(launcher, buffer=6))
    assert more <= {job.id for job in jobs_of_bob}, "nothing is kept any more"


def test_a_newcomers_job_leaves_the_queue_before_its_turn_and_is_begun_first(
    store: Store, launcher: Launcher
) -> None:
    ana, bob = people(store, "ana", "bob")
    connect(store)
    many = submit(store, ana, 12)
    orders = launcher.launch("here", lambda tx: None)
    assert [order.job_id for order in orders] == [job.id for job in many[:8]]
    assert [order.first for order in orders] == [True, *[False] * 7]
    (first, _) = submit(store, bob, 2)
    full = replace(launcher, buffer=9)
    (given,) = full.launch("here", lambda tx: None)
    assert given.job_id == first.id
    assert given.first


def test_shares_are_told_with_what_they_are_held_against(store: Store) -> None:
    ana, root = people(store, "ana", "root")
    with store.write() as tx:
        charge(tx, {(ana.project_id, ana.user.id): 7200.0})
        set_share_of(tx, ana, "ana", 3.0, 2)
        set_share_of(tx, root, None, 2.0, 0)
        with pytest.raises(NotFound):
            set_share_of(tx, ana, "nobody", 1.0, 0)
        whole, own = shares_of(tx, ana)
    assert (whole.user, whole.usage, whole.weight) == (None, 7200.0, 2.0)
    assert (own.user, own.usage, own.weight, own.priority) == ("ana", 7200.0, 3.0, 2)
