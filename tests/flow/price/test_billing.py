"""Bills and budgets from the history of events, on both databases."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from easel.declare.job import Command, JobSpec
from easel.declare.resources import Resources
from easel.declare.roles import Role
from easel.errors import Denied, InvalidInput, QuotaExhausted
from easel.flow.jobs.submit import submit_job
from easel.flow.price.billing import bill_ended, price_history, set_prices
from easel.flow.price.budgets import set_budget, spending_of, spent_after, watch_budgets
from easel.ids import TokenId
from easel.price.book import Billing, FlatPrice, PriceBook
from easel.price.budget import Budget, Period
from easel.records.identity import Caller
from easel.records.job import Job
from easel.serve.ledger import turn
from easel.store import billing, identity, jobs
from easel.store.engine import Store
from easel.testing.clock import FakeClock

HOURLY = PriceBook(
    name="round",
    vcpu=FlatPrice(per_hour=1.0),
    memory_gb=FlatPrice(per_hour=0.0),
    billing=Billing(granularity_s=0),
)


@dataclass
class World:
    """A store whose clock stands still until told, with one project and an admin of everything."""

    store: Store
    clock: FakeClock
    ana: Caller
    made: list[Job] = field(default_factory=list)

    def job(self, **fields: Any) -> Job:
        spec = JobSpec(name="test", run=Command(("true",)), resources=Resources(1.0, 1024), **fields)
        with self.store.write() as tx:
            return submit_job(tx, self.ana, spec)

    def tell(self, kind: str, job: Job) -> None:
        """What the controller writes when an attempt gets somewhere."""
        with self.store.write() as tx:
            tx.emit(f"job.{kind}", job.id, project_id=self.ana.project_id)

    def later(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def ran(self, seconds: float, **fields: Any) -> Job:
        job = self.job(**fields)
        self.tell("launching", job)
        self.later(50)
        self.tell("downloading", job)
        self.tell("running", job)
        self.later(seconds)
        self.tell("finished", job)
        return job

    def bill(self) -> int:
        with self.store.write() as tx:
            return bill_ended(tx)

    def paid(self, job: Job) -> list[tuple[str, float, int]]:
        with self.store.read() as tx:
            rows = billing.lines_of(tx, self.ana.project_id, job.id)
        return [(row.book, row.seconds, row.micros) for row in rows]


@pytest.fixture
def world(store: Store) -> World:
    clock = FakeClock(datetime(2026, 3, 10, 12, tzinfo=UTC))
    store.clock = clock
    with store.write() as tx:
        project = identity.add_project(tx, "astro", "")
        user = identity.add_user(tx, "ana", home=project.id, platform_admin=True)
        identity.put_member(tx, project.id, user.id, Role.ADMIN)
    made = World(store, clock, Caller(user, TokenId("tok"), project, Role.ADMIN))
    with store.write() as tx:
        set_prices(tx, made.ana, HOURLY)
    return made


def test_a_job_pays_for_the_time_on_its_device_and_not_for_waiting(world: World) -> None:
    job = world.ran(1800)
    world.bill()
    assert world.paid(job) == [("round", 1800.0, 500_000)]


def test_events_are_billed_once_however_often_the_ledger_looks(world: World) -> None:
    job = world.ran(1800)
    assert world.bill() > 0
    assert world.bill() == 0
    turn(world.store)
    assert len(world.paid(job)) == 1


def test_an_attempt_that_is_tried_again_is_paid_as_well(world: World) -> None:
    job = world.job()
    for seconds, end in ((600, "queued"), (1200, "finished")):
        world.tell("running", job)
        world.later(seconds)
        world.tell(end, job)
        world.later(1000)
    world.bill()
    assert [seconds for _, seconds, _ in world.paid(job)] == [600.0, 1200.0]


def test_a_job_that_never_reached_a_device_costs_nothing(world: World) -> None:
    job = world.job()
    world.later(500)
    world.tell("killed", job)
    world.bill()
    assert world.paid(job) == []


def test_what_was_spent_today_counts_the_share_of_jobs_that_began_yesterday(world: World) -> None:
    def spent(since: datetime) -> int:
        with world.store.read() as tx:
            return spent_after(tx, world.ana.project_id, since)

    world.ran(3600)
    morning = world.clock.now()
    world.later(3600)
    world.ran(1800)
    halfway = world.clock.now() - timedelta(seconds=600)
    world.bill()
    assert spent(morning) == 500_000
    assert spent(halfway) == round(1_000_000 / 6)
    job = world.job()
    world.tell("running", job)
    world.bill()
    world.later(900)
    assert spent(morning) == 750_000
    assert spent(datetime.min.replace(tzinfo=UTC)) == 1_750_000
    assert spent(datetime.max.replace(tzinfo=UTC)) == 0


def test_a_price_change_while_the_job_runs_splits_its_bill(world: World) -> None:
    job = world.job()
    world.tell("running", job)
    world.later(1800)
    dearer = HOURLY.model_copy(update={"name": "dearer", "vcpu": FlatPrice(per_hour=3.0)})
    with world.store.write() as tx:
        set_prices(tx, world.ana, dearer)
    world.later(1800)
    world.tell("finished", job)
    world.bill()
    assert world.paid(job) == [("round", 1800.0, 500_000), ("dearer", 1800.0, 1_500_000)]


def test_prices_change_neither_the_past_nor_the_currency_nor_by_anybody(world: World) -> None:
    with world.store.write() as tx:
        with pytest.raises(InvalidInput, match="past"):
            set_prices(tx, world.ana, HOURLY, tx.now - timedelta(seconds=1))
        with pytest.raises(InvalidInput, match="EUR"):
            set_prices(tx, world.ana, HOURLY.model_copy(update={"currency": "EUR"}))
        assert len(price_history(tx)) == 2
    plain = Caller(
        type(world.ana.user)(world.ana.user.id, "ben", False, world.clock.now(), None),
        TokenId("tok"),
        world.ana.project,
        Role.ADMIN,
    )
    with world.store.write() as tx, pytest.raises(Denied):
        set_prices(tx, plain, HOURLY)


def test_reports_group_what_was_paid(world: World) -> None:
    world.ran(3600, tags={"app": "digits"})
    world.clock.advance(30 * 86_400)
    world.ran(7200)
    world.bill()
    with world.store.read() as tx:
        by = {group: billing.totals(tx, group) for group in billing.GROUPS}
        april = billing.totals(tx, "app", month="2026-04")
    assert [(t.group, t.micros) for t in by["month"]] == [("2026-04", 2_000_000), ("2026-03", 1_000_000)]
    assert [(t.group, t.micros) for t in by["app"]] == [("", 2_000_000), ("digits", 1_000_000)]
    assert [(t.jobs, t.micros) for t in by["user"]] == [(2, 3_000_000)]
    assert [t.micros for t in by["project"]] == [3_000_000]
    assert [(t.group, t.micros) for t in april] == [("", 2_000_000)]


def test_running_jobs_count_and_a_spent_budget_stops_them_once(world: World) -> None:
    with world.store.write() as tx:
        set_budget(tx, world.ana, Budget(1_000_000))
    job = world.job()
    world.tell("running", job)
    world.bill()
    world.later(3000)
    with world.store.write() as tx:
        assert spending_of(tx, world.ana.project_id, Period.MONTH).so_far == 833_333
        assert watch_budgets(tx) == 2  # half, and eight tenths
    with world.store.read() as tx:
        assert not jobs.find(tx, world.ana.project_id, job.id).kill_requested
    world.later(700)
    with world.store.write() as tx:
        assert watch_budgets(tx) == 2  # the last warning, and the end of the job
        assert watch_budgets(tx) == 0
    with world.store.read() as tx:
        stopped = jobs.find(tx, world.ana.project_id, job.id)
    assert stopped.state == "killed"
    assert "budget of 1.00 is spent" in (stopped.reason or "")


def test_a_spent_budget_refuses_jobs_until_the_next_month(world: World) -> None:
    with world.store.write() as tx:
        set_budget(tx, world.ana, Budget(1_000_000))
    world.ran(3600)
    world.bill()
    with pytest.raises(QuotaExhausted, match="month budget"):
        world.job()
    world.later(31 * 86_400)
    world.job()
    with world.store.write() as tx:
        set_budget(tx, world.ana, None)
    world.job()
