"""Jobs whose bytes are in a bucket: what they read comes from it, what they leave goes into it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.lake.conftest import bucket, s3_endpoint

from easel.flow.jobs.files import files_of
from easel.lake.blobs.address import ACCESS_KEY
from easel.lake.digest import from_hex
from easel.records.job import Job, JobState
from easel.testing import s3
from easel.testing.engine import EngineUnderTest, running
from easel.testing.s3 import Bucket

__all__ = ["bucket", "s3_endpoint"]  # fixtures
LARGE = 300_000


@pytest.fixture
def engine(tmp_path: Path, bucket: Bucket) -> Iterator[EngineUnderTest]:
    with running(tmp_path / "home", depot=bucket.address, credentials=s3.CREDENTIALS) as made:
        yield made


def output(engine: EngineUnderTest, job: Job) -> dict[str, bytes]:
    with engine.store.read() as tx:
        files = files_of(tx, engine.caller(), engine.job(job).output_set)
    blobs = engine.lake.blobs
    return {f.path: b"".join(blobs.read(from_hex(f.object), f.offset, f.size)) for f in files}


def test_a_command_reads_from_the_bucket_and_leaves_small_and_large_files_in_it(
    engine: EngineUnderTest, bucket: Bucket
) -> None:
    inputs = engine.upload({"small.txt": b"few bytes", "large.bin": bytes(range(250)) * 2000}, "inputs")
    script = f"cp input/data/small.txt output/; head -c {LARGE} input/data/large.bin > output/large"
    job = engine.submit("sh", "-c", script, input=inputs)
    (done,) = engine.finish(engine.controller(), job)
    assert done.state is JobState.FINISHED, done.reason
    made = output(engine, job)
    assert made == {
        f"/{job.id}-output/small.txt": b"few bytes",
        f"/{job.id}-output/large": (bytes(range(250)) * 2000)[:LARGE],
    }
    assert not (engine.home / "blobs").exists(), "nothing may lie on this machine's disk only"


def test_a_trial_reads_from_the_bucket(engine: EngineUnderTest) -> None:
    inputs = engine.upload({"a.txt": b"x"}, "inputs")
    job = engine.trial("add", arguments={"a": 2, "b": 3}, input=inputs)
    (done,) = engine.finish(engine.controller(), job)
    assert done.state is JobState.FINISHED, done.reason
    assert done.result == {"sum": 5, "read": ["data"]}


def test_neither_the_list_of_processes_nor_a_job_shows_the_credentials(engine: EngineUnderTest) -> None:
    job = engine.submit("sh", "-c", "env")
    engine.finish(engine.controller(), job)
    assert not [line for line in engine.log(job) if "S3" in line]
    assert engine.worker_pid is not None
    worker = psutil.Process(engine.worker_pid)
    assert worker.environ()[ACCESS_KEY] == s3.KEY
    assert not [word for word in worker.cmdline() if ACCESS_KEY in word or "secret" in word.lower()]
