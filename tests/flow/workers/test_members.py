"""Jobs on several machines at once: what each member says reaches the one job that they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from easel.declare.resources import Room
from easel.flow.secrets import hashed
from easel.flow.workers.exchange import ExchangeReply, Said, exchange
from easel.flow.workers.seal import Seal
from easel.flow.workers.tokens import issue
from easel.records.attempt import EndReason
from easel.records.job import JobState, Usage
from easel.run.entries import AttemptDone, AttemptEnded, JournalEntry, Kept, LoggedLines, StateReached
from easel.serve.controller import Controller
from easel.serve.lake import signing_key
from easel.testing.engine import EngineUnderTest, running

RUNNING = JournalEntry(0, 0.0, StateReached(JobState.RUNNING))
END = [JournalEntry(2, 0.0, Kept(())), JournalEntry(3, 0.0, AttemptDone(Usage()))]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EngineUnderTest]:
    with running(tmp_path / "home") as made:
        yield made


class Pair:
    """Two machines, each of which is a worker that says what the test tells it to."""

    def __init__(self, engine: EngineUnderTest) -> None:
        self._store, self._seal = engine.store, Seal(signing_key(engine.home))
        with self._store.write() as tx:
            secret = hashed(issue(tx, None, "pair").secret)
        self.said = {
            name: Said(secret, name, "remote", 0, 0, 0.0, Room(1.0, 1024), address=name)
            for name in ("a", "b")
        }
        self.keys: dict[str, str] = {}

    def join(self) -> dict[str, dict[str, Any]]:
        """Both ask at once; what each was told about its part."""
        told: dict[str, dict[str, Any]] = {}
        for name, answer in self.speak(dict.fromkeys(self.said, ())).items():
            for given in answer.start:
                order = given["order"]
                suffix = f"-{order['rank']}" if order["rank"] else ""
                self.keys[name] = f"{order['job_id']}.{order['attempt']}{suffix}"
                told[name] = order
        return told

    def speak(self, entries: dict[str, tuple[JournalEntry, ...]]) -> dict[str, ExchangeReply]:
        for name in entries:
            before = self.said[name]
            mine = {self.keys[name]: 0} if name in self.keys else {}
            news = [(self.keys[name], list(entries[name]))] if entries[name] else []
            self.said[name] = replace(before, number=before.number + 1, attempts=mine, entries=news)
        answers = exchange(self._store, [self.said[name] for name in entries], self._seal)
        found: dict[str, ExchangeReply] = {}
        for name, answer in zip(entries, answers, strict=True):
            assert isinstance(answer, ExchangeReply), answer
            self.said[name] = replace(self.said[name], session=answer.session)
            found[name] = answer
        return found


def log(number: int, *lines: str) -> JournalEntry:
    data = "".join(f"{line}\n" for line in lines).encode()
    return JournalEntry(number, 0.0, LoggedLines("out", len(lines), 0, len(data), data))


def turn(engine: EngineUnderTest, controller: Controller) -> None:
    while controller.turn():
        pass


def test_lines_of_every_member_are_in_the_jobs_log_once_also_over_a_new_controller(
    engine: EngineUnderTest,
) -> None:
    controller = engine.controller(executor="remote")
    job = engine.submit("train", workers=2)
    pair = Pair(engine)
    engine.turn_until(controller, lambda: bool(pair.join()))
    assert sorted(pair.keys.values()) == [f"{job.id}.1", f"{job.id}.1-1"]
    first, second = sorted(pair.keys, key=lambda name: pair.keys[name])
    pair.speak({first: (RUNNING, log(1, "zero")), second: (RUNNING, log(1, "one", "uno"))})
    turn(engine, controller)
    assert sorted(engine.log(job)) == ["[1] one", "[1] uno", "zero"]
    # Whoever takes over reads what is left of the reports; what was read before is not read again.
    controller._resign()
    after = engine.controller(executor="remote")
    engine.turn_until(after, lambda: after.connected)
    pair.speak({second: (log(2, "due"),)})
    turn(engine, after)
    pair.speak({first: tuple(END)})
    (done,) = engine.finish(after, job)
    assert done.state is JobState.FINISHED
    assert sorted(engine.log(job)) == ["[1] due", "[1] one", "[1] uno", "zero"]


def test_a_member_that_fails_ends_the_job_with_its_reason_and_its_last_words(engine: EngineUnderTest) -> None:
    controller = engine.controller(executor="remote")
    job = engine.submit("train", workers=2)
    pair = Pair(engine)
    engine.turn_until(controller, lambda: bool(pair.join()))
    (second,) = (name for name, key in pair.keys.items() if key.endswith("-1"))
    end = JournalEntry(2, 0.0, AttemptEnded(EndReason.EXIT_CODE, "exit code 3", 3))
    pair.speak({second: (RUNNING, log(1, "no room"), end)})
    (done,) = engine.finish(controller, job)
    assert (done.state, done.reason) == (JobState.FAILED, "worker 1: exit code 3")
    assert engine.log(job) == ["[1] no room"]
