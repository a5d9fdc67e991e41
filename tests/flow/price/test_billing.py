"""Bills and budgets from the journals of attempts, on both databases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from easel.declare.job import Command, JobSpec, RetryRule
from easel.declare.page import PageRequest
from easel.declare.resources import Resources, Room
from easel.declare.roles import Role
from easel.errors import Denied, InvalidInput, QuotaExhausted
from easel.flow.budgets import (
    check_admission,
    set_budget,
    spending_of,
    spent_after,
    spent_projects,
    stops_in,
)
from easel.flow.jobs.advance import Advance, Advancer, columns_of, life_of
from easel.flow.jobs.launch import Launcher
from easel.flow.jobs.orders import OrderLimits
from easel.flow.jobs.reports import AttemptReport
from easel.flow.jobs.stranded import unaffordable
from easel.flow.jobs.submit import submit_job
from easel.flow.jobs.waiting import why_waiting
from easel.flow.lake.upload import Lake
from easel.flow.price.billing import bill_ended, totals
from easel.flow.price.watch_budgets import watch_budgets
from easel.flow.prices import price_history, set_prices
from easel.ids import TokenId
from easel.lake.blobs.address import open_blobs
from easel.price.book import Billing, FlatPrice, PriceBook, book_named
from easel.price.budget import Budget, Period
from easel.records.attempt import AttemptKey, EndReason
from easel.records.identity import Caller
from easel.records.job import Job, JobState, Usage
from easel.run.entries import (
    AttemptDone,
    AttemptEnded,
    AttemptLost,
    EntryBody,
    JournalEntry,
    Kept,
    StateReached,
    UsageSoFar,
)
from easel.run.lifecycle import Dequeued, step
from easel.run.secret_store import SecretStore
from easel.serve.ledger import turn
from easel.store import billing, devices, identity, job_attempts, jobs, profiles
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
    advancer: Advancer
    journals: dict[AttemptKey, list[JournalEntry]] = field(default_factory=dict)

    def job(self, **fields: Any) -> Job:
        fields = {"resources": Resources(1.0, 1024), **fields}
        spec = JobSpec(name="test", run=Command(("true",)), **fields)
        with self.store.write() as tx:
            return submit_job(tx, self.ana, spec)

    def launch(self, job: Job) -> AttemptKey:
        with self.store.write() as tx:
            row = jobs.rows(tx, [job.id])[job.id]
            life = step(life_of(row), Dequeued()).life
            jobs.change(tx, [(row, columns_of(life, row, tx.now))])
        return AttemptKey(job.id, life.attempt)

    def write(self, key: AttemptKey, *bodies: EntryBody) -> None:
        """Its agent writes this, now; nobody has read it yet."""
        journal = self.journals.setdefault(key, [])
        now = self.clock.now().timestamp()
        journal += [JournalEntry(len(journal) + i, now, body) for i, body in enumerate(bodies)]

    def read(self, key: AttemptKey) -> Advance:
        """The controller reads its whole journal, as it does after each new start."""
        return self.advancer.advance([AttemptReport(key, self.journals[key])], lambda _: None)

    def lose(self, key: AttemptKey) -> None:
        gone = AttemptReport(key, gone=(EndReason.DEVICE_LOST, "its device left"))
        self.advancer.advance([gone], lambda _: None)

    def begin(self, job: Job) -> AttemptKey:
        key = self.launch(job)
        self.later(50)
        self.write(key, StateReached(JobState.DOWNLOADING), StateReached(JobState.RUNNING))
        self.read(key)
        return key

    def end(self, key: AttemptKey, *bodies: EntryBody) -> None:
        self.write(key, *(bodies or (Kept(()), AttemptDone(Usage()))))
        self.read(key)

    def later(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def ran(self, seconds: float, **fields: Any) -> Job:
        job = self.job(**fields)
        key = self.begin(job)
        self.later(seconds)
        self.end(key)
        return job

    def bill(self) -> int:
        with self.store.write() as tx:
            return bill_ended(tx)

    def paid(self, job: Job) -> list[tuple[str, float, int]]:
        with self.store.read() as tx:
            rows = billing.lines_of(tx, self.ana.project_id, job.id)
        return [(row.book, row.seconds, row.micros) for row in rows]


@pytest.fixture
def world(store: Store, tmp_path: Path) -> World:
    clock = FakeClock(datetime(2026, 3, 10, 12, tzinfo=UTC))
    store.clock = clock
    with store.write() as tx:
        project = identity.add_project(tx, "astro", "")
        user = identity.add_user(tx, "ana", home=project.id, platform_admin=True)
        identity.put_member(tx, project.id, user.id, Role.ADMIN)
    lake = Lake(store, open_blobs(str(tmp_path / "blobs"), {}))
    made = World(store, clock, Caller(user, TokenId("tok"), project, Role.ADMIN), Advancer(lake))
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
    first = world.begin(job)
    world.later(600)
    world.end(first, AttemptLost(EndReason.AGENT_DIED, "its agent died"))
    world.later(1000)
    second = world.begin(job)
    world.later(1200)
    world.end(second)
    world.bill()
    assert [seconds for _, seconds, _ in world.paid(job)] == [600.0, 1200.0]
    with world.store.read() as tx:
        ended = job_attempts.of_job(tx, job.id)
    assert [(each.attempt, each.state, each.end_reason) for each in ended] == [
        (1, "queued", EndReason.AGENT_DIED),
        (2, "finished", None),
    ]


def test_seconds_are_the_journals_however_late_anybody_reads_it(world: World) -> None:
    job = world.job()
    key = world.launch(job)
    world.write(key, StateReached(JobState.DOWNLOADING))
    world.later(3)
    world.write(key, StateReached(JobState.RUNNING))
    world.later(27)
    world.write(key, Kept(()), AttemptDone(Usage()))
    world.later(3600)  # the server was stopped
    world.read(key)
    world.read(key)
    world.bill()
    assert [seconds for _, seconds, _ in world.paid(job)] == [30.0]
    with world.store.read() as tx:
        done = jobs.find(tx, world.ana.project_id, job.id)
    assert done.started_at is not None
    assert done.ended_at is not None
    assert (done.ended_at - done.started_at).total_seconds() == 27.0


def test_a_lost_attempt_pays_until_the_last_thing_known_of_it(world: World) -> None:
    job = world.job()
    key = world.begin(job)
    world.later(25)
    world.write(key, UsageSoFar(Usage()))
    world.read(key)
    world.later(120)
    world.lose(key)
    world.bill()
    assert [seconds for _, seconds, _ in world.paid(job)] == [25.0]


def test_members_of_a_distributed_job_are_paid_each(world: World) -> None:
    job = world.ran(3600, workers=3)
    world.bill()
    assert world.paid(job) == [("round", 3600.0, 3_000_000)]


def test_a_job_that_never_reached_a_device_costs_nothing(world: World) -> None:
    job = world.job()
    key = world.launch(job)
    world.later(500)
    world.lose(key)
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
    world.begin(world.job())
    world.later(900)
    assert spent(morning) == 750_000
    assert spent(datetime.min.replace(tzinfo=UTC)) == 1_750_000
    assert spent(datetime.max.replace(tzinfo=UTC)) == 0


def test_a_price_change_while_the_job_runs_splits_its_bill(world: World) -> None:
    job = world.job()
    key = world.begin(job)
    world.later(1800)
    dearer = HOURLY.model_copy(update={"name": "dearer", "vcpu": FlatPrice(per_hour=3.0)})
    with world.store.write() as tx:
        set_prices(tx, world.ana, dearer)
    world.later(1800)
    world.end(key)
    world.bill()
    assert world.paid(job) == [("round", 1800.0, 500_000), ("dearer", 1800.0, 1_500_000)]


def test_a_book_is_kept_as_servers_of_older_releases_read_it_too(world: World) -> None:
    """They refuse fields that they do not know, and serve beside this release while it is installed."""
    with world.store.write() as tx:
        set_prices(tx, world.ana, HOURLY)
        assert "terms_of" not in billing.price_history(tx)[-1][1]
        set_prices(tx, world.ana, book_named("n1-mixed"))
        assert billing.price_history(tx)[-1][1]["terms_of"]


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


def test_what_runs_over_midnight_is_shared_out_to_its_days_and_nothing_is_lost(world: World) -> None:
    """From noon: one hour that day, then two days and a bit."""
    world.ran(3600)
    world.ran(2 * 86_400)
    world.clock.advance(60 * 86_400)
    world.ran(1800)
    world.bill()
    with world.store.read() as tx:
        days = totals(tx, "day", None, world.ana.project_id)
        march = totals(tx, "day", "2026-03", world.ana.project_id)
        (whole,) = totals(tx, "project", None, world.ana.project_id)
    assert [(day.group, day.jobs) for day in march] == [
        ("2026-03-10", 2),
        ("2026-03-11", 1),
        ("2026-03-12", 1),
    ]
    assert march[1].micros == 24_000_000
    assert days[:3] == march
    assert days[3].group == "2026-05-11"
    assert sum(day.micros for day in days) == whole.micros


def test_a_job_of_several_lines_is_counted_once_a_day(world: World) -> None:
    """From 22:00: tried again at once, the second attempt goes on over midnight while the prices change."""
    world.later(10 * 3600)
    job = world.job(retry=RetryRule(failed=1))
    key = world.begin(job)
    world.later(1800)
    world.end(key, AttemptEnded(EndReason.EXIT_CODE, "exit code 1", exit_code=1))
    key = world.begin(job)
    world.later(3600)
    with world.store.write() as tx:
        set_prices(tx, world.ana, HOURLY.model_copy(update={"vcpu": FlatPrice(per_hour=2.0)}))
    world.later(3 * 3600)
    world.end(key)
    world.bill()
    with world.store.read() as tx:
        lines = billing.lines_of(tx, world.ana.project_id, job.id)
        days = totals(tx, "day", None, world.ana.project_id)
        (whole,) = totals(tx, "project", None, world.ana.project_id)
    assert len(lines) == 3
    assert [(day.group, day.jobs) for day in days] == [("2026-03-10", 1), ("2026-03-11", 1)]
    assert sum(day.micros for day in days) == whole.micros


def test_running_jobs_count_and_a_spent_budget_stops_them_once(world: World) -> None:
    with world.store.write() as tx:
        set_budget(tx, world.ana, Budget(1_000_000))
    job = world.job()
    key = world.begin(job)
    world.later(3000)
    with world.store.write() as tx:
        assert spending_of(tx, world.ana.project_id, Period.MONTH).so_far == 833_333
        assert watch_budgets(tx, stops_in(5.0)) == 2  # half, and eight tenths
    with world.store.read() as tx:
        assert not jobs.find(tx, world.ana.project_id, job.id).kill_requested
    world.later(700)
    with world.store.write() as tx:
        assert watch_budgets(tx, stops_in(5.0)) == 2  # the last warning, and the end of the job
        assert watch_budgets(tx, stops_in(5.0)) == 0
    world.end(key, AttemptEnded(EndReason.STOPPED, "stopped"))
    with world.store.read() as tx:
        stopped = jobs.find(tx, world.ana.project_id, job.id)
    assert (stopped.state, stopped.end_reason) == ("killed", EndReason.BY_BUDGET)
    assert "budget of 1.00 USD is spent" in (stopped.reason or "")


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


def test_forty_who_submit_at_once_are_promised_no_more_than_a_hard_budget_has(world: World) -> None:
    with world.store.write() as tx:
        set_budget(tx, world.ana, Budget(1_000_000))
    each = 90_000

    def submit(number: int) -> bool:
        try:
            with world.store.write() as tx:
                check_admission(tx, world.ana, each)
                job = submit_job(tx, world.ana, JobSpec(f"j{number}", Command(("true",))))
                promise = {"profile_id": "p", "features": {}, "wish": {}, "promised_micros": each}
                seconds = {"promised_seconds": 1.0, "low_seconds": 1.0, "high_seconds": 1.0}
                profiles.add_promise(
                    tx, {"job_id": job.id, "project_id": world.ana.project_id, **promise, **seconds}
                )
        except QuotaExhausted:
            return False
        return True

    with ThreadPoolExecutor(40) as threads:
        admitted = list(threads.map(submit, range(40)))
    assert sum(admitted) == 11
    with world.store.read() as tx:
        assert spending_of(tx, world.ana.project_id, Period.MONTH).committed == 11 * each


def test_jobs_that_outgrow_a_hard_budget_end_before_it_is_exceeded(world: World) -> None:
    limit = 500_000
    with world.store.write() as tx:
        set_budget(tx, world.ana, Budget(limit))
    running = {world.begin(world.job()): 0.0 for _ in range(5)}
    grace = dict.fromkeys(running, 5.0)
    while running:
        world.later(1.0)
        with world.store.write() as tx:
            watch_budgets(tx, stops_in(5.0))
            rows = jobs.rows(tx, [key.job_id for key in running])
        for key in [key for key in running if rows[key.job_id].kill_requested]:
            grace[key] -= 1.0  # it ignores the signal as long as it may
            if grace[key] <= 0:
                del running[key]
                world.end(key, AttemptEnded(EndReason.STOPPED, "stopped"))
    while world.bill():
        pass
    with world.store.read() as tx:
        billed = billing.billed_micros(tx, world.ana.project_id, None)
    assert limit * 0.8 < billed <= limit
    # What is left is less than a job would use before it is stopped: nothing more begins.
    with world.store.read() as tx:
        left = limit - billed
        assert (world.ana.project_id in spent_projects(tx)) == (left <= 973)


def test_forty_jobs_of_which_nobody_knows_what_they_cost_stay_below_a_hard_budget(
    world: World, tmp_path: Path
) -> None:
    """They wait in the queue, there is room for all, and each goes on after its signal for as long as it may."""
    limit, grace_s = 500_000, 20.0
    stops = stops_in(grace_s)
    launcher = Launcher(world.store, SecretStore(tmp_path / "s"), OrderLimits(grace_s=grace_s), 100, 256)
    with world.store.write() as tx:
        set_budget(tx, world.ana, Budget(limit))
        devices.seen(tx, "here", "local", Room(100.0, 400_000), {})
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: world.job(resources=Resources(4.0, 1024)), range(40)))
    running: dict[AttemptKey, float] = {}
    began, idle = 0, 0
    while idle < 3:
        for order in launcher.launch("here", lambda _: None):
            key = AttemptKey.parse(order.key)
            world.write(key, StateReached(JobState.DOWNLOADING), StateReached(JobState.RUNNING))
            world.read(key)
            running[key] = grace_s
            began += 1
        world.later(1.0)
        with world.store.write() as tx:
            watch_budgets(tx, stops)
            rows = jobs.rows(tx, [key.job_id for key in running])
        for key in [key for key in running if rows[key.job_id].kill_requested]:
            running[key] -= 1.0
            if running[key] <= 0:
                del running[key]
                world.end(key, AttemptEnded(EndReason.STOPPED, "stopped"))
        idle = 0 if running else idle + 1
    while world.bill():
        pass
    with world.store.read() as tx:
        billed = billing.billed_micros(tx, world.ana.project_id, None)
        left = [job.state for job, _ in jobs.list_jobs(tx, world.ana.project_id, PageRequest(limit=50)).items]
    assert limit * 0.7 < billed <= limit
    assert left.count(JobState.QUEUED) + began == 40  # the others wait for a larger budget, and were not lost


def test_a_job_for_which_a_hard_budget_has_no_room_says_so(world: World) -> None:
    with world.store.write() as tx:
        set_budget(tx, world.ana, Budget(10_000))
    large, small = world.job(resources=Resources(8.0, 1024)), world.job()
    with world.store.read() as tx:
        assert "too little is left of the project's budget" in (why_waiting(tx, large, 8) or "")
        assert why_waiting(tx, small, 8) == "1 job of its owner's is ahead of it in the queue"


def test_what_was_launched_and_has_not_begun_goes_back_before_it_could_pass_a_hard_budget(
    world: World,
) -> None:
    with world.store.write() as tx:
        set_budget(tx, world.ana, Budget(10_000))
    begun, launched = world.begin(world.job()), world.launch(world.job())
    world.later(25.0)
    with world.store.write() as tx:
        watch_budgets(tx, stops_in(5.0))
        rows = jobs.rows(tx, [begun.job_id, launched.job_id])
    assert not any(row.kill_requested for row in rows.values())
    assert unaffordable(world.store, stops_in(5.0)) == [launched]
    assert unaffordable(world.store, stops_in(5.0), {str(launched)}) == []
    with world.store.write() as tx:
        set_budget(tx, world.ana, Budget(20_000))
    assert unaffordable(world.store, stops_in(5.0)) == []


def test_the_budget_and_the_bills_say_the_same(world: World) -> None:
    def both() -> tuple[int, int]:
        with world.store.read() as tx:
            spending = spending_of(tx, world.ana.project_id, Period.MONTH)
            return spending.billed_micros, billing.billed_micros(tx, world.ana.project_id, "2026-03")

    world.ran(1800)
    before, unbilled = both()
    assert (before, unbilled) == (500_000, 0)  # what is over counts before its bill is drawn up
    world.bill()
    world.begin(world.job())
    world.later(900)
    assert both() == (500_000, 500_000)
