"""Trials of a pack run in one process: each has its own end; one that is killed or fails leaves the others running."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.run.executors.test_local import local

from easel.clock import SystemClock
from easel.declare.job import Pack, Trial
from easel.declare.resources import Resources
from easel.records.attempt import EndReason
from easel.records.job import Usage
from easel.run.attempts import Attempt
from easel.run.entries import AttemptDone, AttemptEnded, Kept, ResultTold
from easel.run.journal import Journal, read_whole
from easel.run.launch import Folders
from easel.run.log_writer import LogWriter
from easel.run.order import LogLimits, Order
from easel.run.packs import GATHER_S, gathering_packs, pack_of
from easel.run.sandbox import probe
from easel.run.trial import speech_to
from easel.testing.executor import Listener, Make, clean


@pytest.fixture(scope="module", params=["walls", "open"])
def executors(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Make]:
    if request.param == "walls" and probe() is None:
        pytest.skip("bubblewrap does not work here: apt install bubblewrap")
    sandbox = request.param == "walls"
    yield from local(tmp_path_factory.mktemp("home"), sandbox=sandbox, unsandboxed=not sandbox)


@pytest.fixture
def heard(executors: Make) -> Iterator[Listener]:
    yield Listener(executors("a"))
    clean(executors("a"))


def order(job: str, size: int = 3, attempt: int = 1, **arguments: Any) -> Order:
    run = Trial("easel.testing.trials:meet", arguments, pack=Pack("p", size))
    return Order(job, attempt, "prj", run, resources=Resources(0.5, 256))


def result(heard: Listener, key: str) -> dict[str, Any]:
    return next(dict(body.value) for body in heard.bodies(key) if isinstance(body, ResultTold))


def test_trials_of_a_pack_share_a_process_and_one_that_fails_does_so_alone(heard: Listener) -> None:
    for job, how in (("one", "ends"), ("two", "raises"), ("three", "ends")):
        heard.executor.start(order(job, how=how))
    heard.done("one.1")
    heard.done("three.1")
    assert heard.failed("two.1").reason == "RuntimeError: the loss is not a number"
    one, three = result(heard, "one.1"), result(heard, "three.1")
    assert (one, one["together"]) == (three, 3)
    for job, kept in (("one", True), ("two", False), ("three", True)):
        assert heard.log(f"{job}.1").startswith(b"3 met")
        assert any(isinstance(body, Kept) for body in heard.bodies(f"{job}.1")) == kept


def test_one_that_is_killed_ends_at_once_and_the_others_go_on(heard: Listener, tmp_path: Path) -> None:
    go = tmp_path / "go"
    for job in ("stays", "leaves", "late"):
        heard.executor.start(order(job, until=str(go)))
    heard.until(lambda: all(heard.log(f"{job}.1") for job in ("stays", "leaves", "late")))
    heard.executor.kill("leaves.1", force=True)
    assert heard.failed("leaves.1").end is EndReason.STOPPED
    assert not any(isinstance(body, AttemptEnded) for body in heard.bodies("stays.1"))
    go.touch()
    heard.done("stays.1")
    heard.done("late.1")


def test_when_their_process_dies_all_are_lost_and_later_attempts_go_alone(heard: Listener) -> None:
    heard.executor.start(order("bad", size=2, how="dies"))
    # It would go on for ever: whichever of the two is looked at first, it has not ended when the other dies.
    heard.executor.start(order("good", size=2, until="/never"))
    for job in ("bad", "good"):
        heard.over(f"{job}.1")
        assert heard.lost(f"{job}.1") == "its process died"
    heard.executor.start(order("good", size=2, attempt=2))
    heard.done("good.2")
    assert result(heard, "good.2")["together"] == 1


def test_what_is_said_after_a_trial_is_over_is_none_of_its_log(tmp_path: Path) -> None:
    journals = [Journal(tmp_path / f"{job}.journal", SystemClock()) for job in ("over", "goes-on")]
    paths = [tmp_path / "over.log", tmp_path / "goes-on.log"]
    logs = [LogWriter(path, journal, LogLimits()) for path, journal in zip(paths, journals, strict=True)]
    with speech_to(logs) as lock:
        print("both")
        with lock:
            logs[0].close()
        journals[0].append(AttemptDone(Usage()))
        print("one")
        for log in logs:
            log.flush()
    assert [path.read_text() for path in paths] == ["both\n", "both\none\n"]
    entries, _ = read_whole(tmp_path / "over.journal")
    assert entries[-1].last


def test_the_first_of_a_pack_waits_a_moment_for_the_others() -> None:
    waiting = [
        Attempt(order(job, size=3), Folders(Path("/nowhere") / job), since=since)
        for job, since in (("a", 10.0), ("b", 11.0))
    ]
    assert gathering_packs(waiting, 10.0 + GATHER_S / 2) == {"p"}
    assert gathering_packs(waiting, 10.0 + GATHER_S) == frozenset()
    third = Attempt(order("c"), Folders(Path("/nowhere/c")), since=11.0)
    assert gathering_packs([*waiting, third], 11.0) == frozenset()
    assert pack_of(Attempt(order("a", attempt=2), Folders(Path("/nowhere/a")))) is None
