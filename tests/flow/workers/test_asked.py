"""Machines that pull their work: what is reserved, what goes first, and slices that are asked to give way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from easel.declare.resources import Resources, Room
from easel.flow.operate import reserve as reserving
from easel.flow.secrets import hashed
from easel.flow.workers.exchange import ExchangeReply, Said, exchange
from easel.flow.workers.seal import Seal
from easel.flow.workers.tokens import issue
from easel.ids import JobId
from easel.records.job import JobState
from easel.run.entries import JournalEntry, StateReached
from easel.serve.controller import Controller
from easel.serve.lake import signing_key
from easel.store import job_placements, offers
from easel.testing.engine import EngineUnderTest, running

ONE = Resources(1.0, 256)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EngineUnderTest]:
    with running(tmp_path / "home") as made:
        made.caller()
        made.caller("ben", "bio")
        yield made


class Joined:
    """A machine that joined, with one core; it says that it has whatever it was given."""

    def __init__(self, engine: EngineUnderTest, name: str, *, hears: bool = True) -> None:
        self._store, self._seal = engine.store, Seal(signing_key(engine.home))
        with self._store.write() as tx:
            secret = hashed(issue(tx, None, name).secret)
        heard = frozenset[str]() if hears else None
        self.said = Said(secret, name, "remote", 0, 0, 0.0, Room(1.0, 1024), gave_way=heard)
        self.keys: list[str] = []
        self.begun: set[str] = set()

    def ask(self) -> ExchangeReply:
        fresh = [key for key in self.keys if key not in self.begun]
        self.begun.update(fresh)
        began = [(key, [JournalEntry(0, 0.0, StateReached(JobState.RUNNING))]) for key in fresh]
        said = replace(
            self.said, number=self.said.number + 1, attempts=dict.fromkeys(self.keys, 0), entries=began
        )
        (answer,) = exchange(self._store, [said], self._seal)
        assert isinstance(answer, ExchangeReply), answer
        self.said = replace(said, session=answer.session)
        self.keys += [f"{one['order']['job_id']}.{one['order']['attempt']}" for one in answer.start]
        return answer

    @property
    def jobs(self) -> set[str]:
        return {key.partition(".")[0] for key in self.keys}


def turn(controller: Controller) -> None:
    while controller.turn():
        pass


def test_a_reserved_machine_that_joined_gets_work_of_its_project_alone(engine: EngineUnderTest) -> None:
    controller = engine.controller(executor="remote")
    kept, free = Joined(engine, "kept"), Joined(engine, "free")
    kept.ask()
    free.ask()
    with engine.store.write() as tx:
        until = tx.now + timedelta(hours=1)
        made = reserving.reserve(tx, engine.caller(), "kept", "bio", tx.now, until)
    others = [engine.submit("true", resources=ONE) for _ in range(3)]
    own = engine.submit("true", who="ben", resources=ONE)

    def both_have_something() -> bool:
        turn(controller)
        kept.ask()
        free.ask()
        return bool(kept.jobs and free.jobs)

    engine.turn_until(controller, both_have_something)
    assert kept.jobs == {own.id}
    assert free.jobs <= {job.id for job in others}
    with engine.store.write() as tx:
        reserving.cancel(tx, engine.caller(), made.id)
    later = Joined(engine, "later")
    later.ask()
    with engine.store.write() as tx:
        reserving.reserve(tx, engine.caller(), "later", "bio", until, until + timedelta(hours=1))
    engine.turn_until(controller, lambda: bool(later.jobs or later.ask().start))
    assert later.jobs <= {job.id for job in others}, "a reservation that has not begun keeps nobody out"


def test_what_others_run_on_a_machine_that_joined_stops_when_its_reservation_begins_if_it_may_be(
    engine: EngineUnderTest,
) -> None:
    controller = engine.controller(executor="remote")
    soft, hard = Joined(engine, "soft"), Joined(engine, "hard")
    for machine in (soft, hard):
        machine.ask()
    may_stop = engine.submit("sleep", "600", resources=ONE, preemptible=True)
    stays = engine.submit("sleep", "600", resources=ONE)

    def both_run() -> bool:
        turn(controller)
        soft.ask()
        hard.ask()
        return all(engine.job(job).state is JobState.RUNNING for job in (may_stop, stays))

    engine.turn_until(controller, both_run)
    where = {job: machine for machine in (soft, hard) for job in machine.jobs}
    with engine.store.write() as tx:
        for name in ("soft", "hard"):
            reserving.reserve(tx, engine.caller(), name, "bio", tx.now, tx.now + timedelta(hours=1))
    asked: dict[str, bool] = {}

    def is_asked() -> bool:
        turn(controller)
        asked.update(where[may_stop.id].ask().kill)
        return bool(asked)

    engine.turn_until(controller, is_asked)
    assert asked == {f"{may_stop.id}.1": False}
    assert where[stays.id].ask().kill == {}, "it did not say that it may be stopped: it runs to its end"


def test_a_slice_on_a_machine_that_joined_is_asked_to_give_way_until_it_has_heard(
    engine: EngineUnderTest,
) -> None:
    controller = engine.controller(executor="remote")
    machine, old = Joined(engine, "box"), Joined(engine, "old", hears=False)
    machine.ask()
    old.ask()
    slices = [engine.trial("wait", resources=ONE, arguments={"until": 0.5}) for _ in range(2)]

    def both_run() -> bool:
        turn(controller)
        machine.ask()
        old.ask()
        return all(engine.job(job).state is JobState.RUNNING for job in slices)

    engine.turn_until(controller, both_run)
    assert machine.ask().give_way == []
    with engine.store.write() as tx:
        assert len(job_placements.ask_to_give_way(tx, [JobId(job.id) for job in slices])) == 2
    (key,) = machine.keys

    def anything_for(one: Joined) -> bool:
        heard = {} if one.said.gave_way is None else {one.said.name: one.said.gave_way}
        with engine.store.read() as tx:
            return offers.anything_for(tx, [one.said.name], ["remote"], heard)

    engine.turn_until(controller, lambda: machine.ask().give_way == [key])
    assert machine.ask().give_way == [key], "an answer may have been lost"
    assert anything_for(machine), "whoever waits for an answer is told at once"
    machine.said = replace(machine.said, gave_way=frozenset({key}))
    assert machine.ask().give_way == []
    assert not anything_for(machine)
    assert not anything_for(old)
    assert old.ask().give_way == [], "one of an earlier release cannot ask, and is not told again and again"
