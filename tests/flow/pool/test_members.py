"""Jobs on several machines at once: what each member says reaches the one job that they are."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from easel.declare.resources import Room
from easel.flow.pool.exchange import Answer, Said, exchange
from easel.flow.pool.seal import Seal
from easel.flow.pool.tokens import issue
from easel.flow.secrets import hashed
from easel.records.job import JobState
from easel.run.journal import Entry
from easel.serve.controller import Controller
from easel.serve.lake import signing_key
from easel.testing.engine import Engine, running

USED = {"cpu_seconds": 0.0, "peak_memory_mb": 0.0, "wall_seconds": 0.0, "peak_gpu_memory_mb": 0.0}
RUNNING: Entry = {"n": 0, "at": 0.0, "k": "reached", "state": "running"}
END: list[Entry] = [
    {"n": 2, "at": 0.0, "k": "output", "files": [], "inline": {}},
    {"n": 3, "at": 0.0, "k": "done", "usage": USED},
]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with running(tmp_path / "home") as made:
        yield made


class Pair:
    """Two machines, each of which is a worker that says what the test tells it to."""

    def __init__(self, engine: Engine) -> None:
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

    def speak(self, entries: dict[str, tuple[Entry, ...]]) -> dict[str, Answer]:
        for name in entries:
            before = self.said[name]
            mine = {self.keys[name]: 0} if name in self.keys else {}
            news = [(self.keys[name], list(entries[name]))] if entries[name] else []
            self.said[name] = replace(before, number=before.number + 1, attempts=mine, entries=news)
        answers = exchange(self._store, [self.said[name] for name in entries], self._seal)
        found: dict[str, Answer] = {}
        for name, answer in zip(entries, answers, strict=True):
            assert isinstance(answer, Answer), answer
            self.said[name] = replace(self.said[name], session=answer.session)
            found[name] = answer
        return found


def log(number: int, *lines: str) -> Entry:
    data = "".join(f"{line}\n" for line in lines).encode()
    said = base64.b64encode(data).decode()
    return {"n": number, "at": 0.0, "k": "log", "f": "out", "s": len(data), "lines": len(lines), "data": said}


def turn(engine: Engine, controller: Controller) -> None:
    while controller.turn():
        pass


def test_lines_of_every_member_are_in_the_jobs_log_once_also_over_a_new_controller(engine: Engine) -> None:
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


def test_a_member_that_fails_ends_the_job_with_its_reason_and_its_last_words(engine: Engine) -> None:
    controller = engine.controller(executor="remote")
    job = engine.submit("train", workers=2)
    pair = Pair(engine)
    engine.turn_until(controller, lambda: bool(pair.join()))
    (second,) = (name for name, key in pair.keys.items() if key.endswith("-1"))
    end: Entry = {
        "n": 2,
        "at": 0.0,
        "k": "ended",
        "reason": "exit code 3",
        "code": 3,
        "final": False,
        "usage": None,
    }
    pair.speak({second: (RUNNING, log(1, "no room"), end)})
    (done,) = engine.finish(controller, job)
    assert (done.state, done.reason) == (JobState.FAILED, "worker 1: exit code 3")
    assert engine.log(job) == ["[1] no room"]
