"""A file set whose bytes are gone is made again by the jobs that made it, through a real worker."""

from __future__ import annotations

from datetime import timedelta

import pytest

from easel.errors import NotFound
from easel.flow.jobs import replay
from easel.flow.jobs.files import files_of
from easel.flow.lake.collect import collect
from easel.flow.lake.file_set import get_file_set
from easel.lake.digest import Digest, from_hex
from easel.records.job import Job
from easel.serve.controller import Controller
from easel.store import jobs
from easel.testing.engine import EngineUnderTest

NOW = timedelta(0)


def contents(engine: EngineUnderTest, reference: str) -> dict[str, bytes]:
    with engine.store.read() as tx:
        files = files_of(tx, engine.caller(), reference)
    return {f.path: b"".join(engine.lake.blobs.read(from_hex(f.object), f.offset, f.size)) for f in files}


def drop(engine: EngineUnderTest, reference: str) -> None:
    with engine.store.write() as tx:
        replay.drop(tx, engine.caller(), reference)


def replay_all(engine: EngineUnderTest, controller: Controller, reference: str) -> list[Job]:
    """As `easel filesets replay --yes` does."""
    done: list[Job] = []
    while True:
        with engine.store.write() as tx:
            again = replay.replay_next(tx, engine.caller(), reference)
        if again is None:
            return done
        with engine.store.read() as tx:
            job = next(j for j in jobs.find_many(tx, engine.caller().project_id, [again]))
        done += engine.finish(controller, job)


def test_bytes_that_were_dropped_and_collected_come_back_over_a_chain_of_jobs(
    engine: EngineUnderTest,
) -> None:
    controller = engine.controller()
    source = engine.upload({"a.txt": b"seed "}, "seed")
    first = engine.submit("sh", "-c", "cat input/data/a.txt input/data/a.txt > output/b.txt", input=source)
    (one,) = engine.finish(controller, first)
    second = engine.submit("sh", "-c", "cat input/*/b.txt input/*/b.txt > output/c.txt", input=one.output_set)
    (two,) = engine.finish(controller, second)
    assert one.output_set is not None
    assert two.output_set is not None
    before = contents(engine, two.output_set)
    assert list(before.values()) == [b"seed " * 4]
    with engine.store.read() as tx:
        digests = [f.object for r in (one, two) for f in files_of(tx, engine.caller(), r.output_set)]
    drop(engine, two.output_set)
    drop(engine, one.output_set)
    assert collect(engine.lake, NOW).objects >= 1
    for digest in digests:
        with pytest.raises(NotFound):
            list(engine.lake.blobs.read(Digest(bytes.fromhex(digest))))
    with engine.store.read() as tx:
        plan = replay.plan(tx, engine.caller(), two.output_set)
    assert [job.id for job in plan.jobs] == [first.id, second.id]
    again = replay_all(engine, controller, two.output_set)
    assert len(again) == 2
    assert contents(engine, two.output_set) == before
    with engine.store.read() as tx:
        assert get_file_set(tx, engine.caller(), two.output_set).artifact.dropped_at is None
        assert get_file_set(tx, engine.caller(), one.output_set).artifact.dropped_at is None


def test_a_job_that_makes_other_bytes_the_second_time_leaves_the_set_dropped(engine: EngineUnderTest) -> None:
    controller = engine.controller()
    job = engine.submit("sh", "-c", "head -c 16 /dev/urandom > output/noise")
    (made,) = engine.finish(controller, job)
    assert made.output_set is not None
    drop(engine, made.output_set)
    collect(engine.lake, NOW)
    with engine.store.write() as tx:
        again = replay.replay_next(tx, engine.caller(), made.output_set)
    assert again is not None
    with engine.store.read() as tx:
        (submitted,) = jobs.find_many(tx, engine.caller().project_id, [again])
    (other,) = engine.finish(controller, submitted)
    assert other.output_set not in (None, made.output_set)
    with engine.store.read() as tx:
        assert get_file_set(tx, engine.caller(), made.output_set).artifact.dropped_at is not None
