"""Reports of attempts are applied once and in order, whatever arrives, repeats or is missing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from easel.declare.job import RetryRule
from easel.flow.jobs.advance import Advance, Advancer, columns_of, life_of
from easel.flow.jobs.reports import AttemptReport
from easel.records.attempt import AttemptKey, EndReason
from easel.records.job import Job, JobState, Usage
from easel.run.entries import (
    AttemptDone,
    AttemptEnded,
    EntryBody,
    JournalEntry,
    Kept,
    LoggedLines,
    MetricPoints,
    ResultTold,
    StateReached,
    TagsSet,
)
from easel.run.lifecycle import Dequeued, step
from easel.store import job_logs, job_series, jobs
from easel.store.engine import Store, Tx
from easel.testing.engine import EngineUnderTest, running

WHOLE: list[EntryBody] = [
    StateReached(JobState.DOWNLOADING),
    StateReached(JobState.RUNNING),
    LoggedLines("out", 1, data=b"first\n"),
    MetricPoints([("loss", 0, 1.0)]),
    TagsSet([("job", "model", "small")]),
    LoggedLines("out", 2, data=b"second\nthird\n"),
    StateReached(JobState.UPLOADING),
    Kept(()),
    ResultTold({"score": 0.5}),
    AttemptDone(Usage(1.0, 2.0, 3.0)),
]
JOURNAL = [JournalEntry(number, 1000.0 + number, body) for number, body in enumerate(WHOLE)]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineUnderTest]:
    with running(tmp_path_factory.mktemp("advance") / "home") as made:
        yield made


def launched(store: Store, job: Job) -> AttemptKey:
    with store.write() as tx:
        row = jobs.rows(tx, [job.id])[job.id]
        life = step(life_of(row), Dequeued()).life
        jobs.change(tx, [(row, columns_of(life, row, tx.now))])
    return AttemptKey(job.id, life.attempt)


def nobody(_: Tx) -> None:
    return None


def tell(advancer: Advancer, key: AttemptKey, *entries: JournalEntry) -> Advance:
    return advancer.advance([AttemptReport(key, list(entries))], nobody)


def assert_whole(engine: EngineUnderTest, job: Job) -> None:
    done = engine.job(job)
    assert done.state is JobState.FINISHED
    assert done.result == {"score": 0.5}
    assert done.started_at is not None
    assert engine.log(job) == ["first", "second", "third"]
    with engine.store.read() as tx:
        assert job_series.series_of(tx, job.id, 1) == {"loss": 1}


def test_entries_behind_a_missing_one_are_refused_and_asked_for(engine: EngineUnderTest) -> None:
    job, advancer = engine.submit("true"), Advancer(engine.lake)
    key = launched(engine.store, job)
    # What a newly connected controller once heard first: the end, before the beginning.
    assert tell(advancer, key, *JOURNAL[6:]).gaps == {key: 0}
    assert engine.job(job).state is JobState.LAUNCHING
    assert tell(advancer, key, *JOURNAL[:3]).gaps == {}
    assert tell(advancer, key, JOURNAL[2], *JOURNAL[5:]).gaps == {key: 3}
    assert tell(advancer, key, *JOURNAL[3:]).over == {key: True}
    assert_whole(engine, job)


def test_an_output_counts_only_with_its_end_also_for_the_next_controller(engine: EngineUnderTest) -> None:
    job = engine.submit("true")
    key = launched(engine.store, job)
    tell(Advancer(engine.lake), key, *JOURNAL[:9])
    after = Advancer(engine.lake)
    assert tell(after, key, JOURNAL[9]).gaps == {key: 7}
    assert tell(after, key, *JOURNAL[7:]).over == {key: True}
    assert_whole(engine, job)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_pieces_in_any_order_come_to_the_same_when_gaps_are_said_again(
    engine: EngineUnderTest, data: st.DataObject
) -> None:
    job, advancer = engine.submit("true"), Advancer(engine.lake)
    key = launched(engine.store, job)
    while engine.job(job).state is not JobState.FINISHED:
        first = data.draw(st.integers(0, len(JOURNAL) - 1))
        last = data.draw(st.integers(first, len(JOURNAL) - 1))
        if data.draw(st.booleans()):
            advancer = Advancer(engine.lake)  # a controller that knows only what is in the database
        gaps = tell(advancer, key, *JOURNAL[first : last + 1]).gaps
        for known in gaps.values():
            tell(advancer, key, *JOURNAL[known:])
    assert_whole(engine, job)


def test_late_lines_of_an_attempt_that_is_tried_again_change_nothing(engine: EngineUnderTest) -> None:
    job, advancer = engine.submit("true", retry=RetryRule(lost=3)), Advancer(engine.lake)
    key = launched(engine.store, job)
    tell(advancer, key, *JOURNAL[:3])
    advancer.advance([AttemptReport(key, gone=(EndReason.DEVICE_LOST, "silent"))], nobody)
    assert engine.job(job).state is JobState.QUEUED
    tell(advancer, key, *JOURNAL)
    assert engine.job(job).state is JobState.QUEUED
    second = launched(engine.store, job)
    assert tell(advancer, second, *JOURNAL).over == {second: True}
    assert engine.job(job).attempt == 2


def test_every_attempt_keeps_its_log(engine: EngineUnderTest) -> None:
    job, advancer = engine.submit("true", retry=RetryRule(failed=2)), Advancer(engine.lake)
    for number in itertools.count(1):
        key = launched(engine.store, job)
        said: list[EntryBody] = [
            StateReached(JobState.RUNNING),
            LoggedLines("out", 1, data=f"try {number}\n".encode()),
        ]
        end = AttemptEnded(EndReason.EXIT_CODE, "exit code 3", 3)
        tell(advancer, key, *(JournalEntry(i, 1000.0 + i, body) for i, body in enumerate([*said, end])))
        if engine.job(job).state is JobState.FAILED:
            break
    with engine.store.read() as tx:
        lines = [
            [line.text for line in job_logs.read_lines(tx, job.id, attempt, 0, 10)] for attempt in (1, 2, 3)
        ]
    assert lines == [["try 1"], ["try 2"], ["try 3"]]


def test_a_job_that_is_tried_again_waits_a_little_longer_each_time(
    engine: EngineUnderTest, tmp_path: Path
) -> None:
    job, advancer = engine.submit("true", retry=RetryRule(lost=5)), Advancer(engine.lake)
    waits = []
    for _ in range(4):
        key = launched(engine.store, job)
        advancer.advance([AttemptReport(key, gone=(EndReason.DEVICE_LOST, "silent"))], nobody)
        with engine.store.read() as tx:
            row = jobs.rows(tx, [job.id])[job.id]
            assert row.not_before is not None
            waits.append((row.not_before - tx.now).total_seconds())
    for number, wait in enumerate(waits):
        assert 2.0**number * 0.4 < wait <= 2.0**number
