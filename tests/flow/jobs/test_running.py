"""Jobs from submit to end, through a real worker."""

from __future__ import annotations

import io
import json
import zipfile

from sqlalchemy import select

from easel.declare.job import RetryRule
from easel.declare.resources import Resources
from easel.flow.jobs.control import kill_job
from easel.flow.jobs.files import files_of
from easel.lake.digest import from_hex
from easel.records.job import JobState
from easel.run.lifecycle import from_json, replay
from easel.store.events import events_after
from easel.store.schema.lake import artifacts, lineage, tags
from easel.testing.engine import EngineUnderTest


def test_a_command_runs_and_its_log_and_output_are_kept(either_engine: EngineUnderTest) -> None:
    controller = either_engine.controller()
    job = either_engine.submit("sh", "-c", "echo hello; echo oops >&2; echo 42 > $EASEL_OUTPUT/answer.txt")
    (done,) = either_engine.finish(controller, job)
    assert (done.state, done.exit_code, done.reason) == (JobState.FINISHED, 0, None)
    assert sorted(either_engine.log(job)) == ["hello", "oops"]
    assert done.output_set == f"{job.id}-output:1"
    assert done.usage is not None


def test_a_trial_returns_its_result(either_engine: EngineUnderTest) -> None:
    controller = either_engine.controller()
    (done,) = either_engine.finish(controller, either_engine.trial("add", arguments={"a": 2, "b": 3}))
    assert done.state is JobState.FINISHED, done.reason
    assert done.result == {"sum": 5, "read": []}


def test_exit_3_fails_and_uploads_nothing(engine: EngineUnderTest) -> None:
    controller = engine.controller()
    job = engine.submit("sh", "-c", "echo before; echo x > $EASEL_OUTPUT/x; exit 3")
    (done,) = engine.finish(controller, job)
    assert (done.state, done.exit_code, done.output_set) == (JobState.FAILED, 3, None)
    assert done.reason == "exit code 3"
    assert engine.log(job) == ["before"]


def test_a_job_that_reaches_its_memory_limit_says_so(engine: EngineUnderTest) -> None:
    controller = engine.controller()
    job = engine.submit("python", "-c", "x = b'x' * (400 << 20)", resources=Resources(0.5, 128))
    (done,) = engine.finish(controller, job)
    assert done.state is JobState.FAILED
    assert done.reason == "the memory limit of 128 MB was reached"


def test_tags_printed_by_a_job_reach_the_job_its_output_and_other_sets(
    either_engine: EngineUnderTest,
) -> None:
    controller = either_engine.controller()
    other = either_engine.upload({"a.txt": b"x"}, "other")
    script = (
        "echo '[EASEL_TAG] job model:BERT'; echo '[ACAI_TAG_NUM] fileset precision:0.75';"
        "echo '[EASEL_TAG] other seen:yes'; echo '[EASEL_TAG] nobody seen:yes'"
    )
    job = either_engine.submit("sh", "-c", script, tags={"given": 1.0})
    (done,) = either_engine.finish(controller, job)
    with either_engine.store.read() as tx:
        query = select(artifacts.c.name, tags.c.key, tags.c.text, tags.c.number)
        found = {tuple(row) for row in tx.execute(query.join(tags, tags.c.artifact_id == artifacts.c.id))}
    assert done.output_set is not None
    assert found == {
        (job.id, "given", None, 1.0),
        (job.id, "model", "BERT", None),
        (done.output_set.partition(":")[0], "precision", None, 0.75),
        (other.partition(":")[0], "seen", "yes", None),
    }


def test_the_word_count_of_the_paper(either_engine: EngineUnderTest) -> None:
    controller = either_engine.controller()
    works = either_engine.upload(
        {
            "hamlet.txt": b"to be or not to be\n",
            "lear.txt": b"nothing will come of nothing\n",
            "a.txt": b"be\n",
        },
        "shakespeare.works",
    )
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("wordcount.py", WORD_COUNT)
    either_engine.upload({"wordcount.zip": code.getvalue()}, "wordcount")
    job = either_engine.submit(
        "python",
        "wordcount.py",
        "input",
        "./my_output/",
        code="/data/wordcount.zip",
        input=works,
        output_folder="./my_output/",
        output_set="counts",
    )
    (done,) = either_engine.finish(controller, job)
    assert done.state is JobState.FINISHED, (done.reason, either_engine.log(job))
    assert done.output_set == "counts:1"
    with either_engine.store.read() as tx:
        (file,) = files_of(tx, either_engine.people["ana"], "counts:1")
        reads = select(lineage.c.source, lineage.c.target).where(lineage.c.job.is_not(None))
        edges = [tuple(row) for row in tx.execute(reads)]
        names = {row.id: f"{row.name}:{row.version}" for row in tx.execute(select(artifacts))}
    assert file.path == "/counts/counts.json"
    data = b"".join(either_engine.lake.blobs.read(from_hex(file.object), file.offset, file.size))
    assert json.loads(data)["be"] == 3
    assert [(names[a], names[b]) for a, b in edges] == [(works, "counts:1")]


WORD_COUNT = """
import collections, json, pathlib, sys
words = collections.Counter()
for file in pathlib.Path(sys.argv[1]).rglob("*.txt"):
    words.update(file.read_text().split())
pathlib.Path(sys.argv[2], "counts.json").write_text(json.dumps(words))
print(len(words), "words")
"""


def test_two_users_share_the_pool_fairly_however_many_jobs_one_has(engine: EngineUnderTest) -> None:
    controller = engine.controller(max_active=2, buffer=2)
    engine.caller("ben")
    many = [engine.trial("noop", name=f"a{i}") for i in range(30)]
    few = [engine.trial("noop", who="ben", name=f"b{i}") for i in range(5)]
    engine.finish(controller, *many, *few)
    order = sorted(
        (engine.job(job) for job in [*many, *few]), key=lambda job: job.started_at or job.submitted_at
    )
    assert {job.name for job in order[:14]} >= {job.name for job in few}


def test_a_pool_runs_more_jobs_at_once_than_wait_for_its_devices(engine: EngineUnderTest) -> None:
    controller = engine.controller(max_active=4, buffer=1)
    held = [engine.submit("sleep", "1000") for _ in range(3)]
    engine.turn_until(controller, lambda: all(engine.job(job).state is JobState.RUNNING for job in held))
    with engine.store.write() as tx:
        for job in held:
            kill_job(tx, engine.people["ana"], job.id, "enough")
    assert {job.state for job in engine.finish(controller, *held)} == {JobState.KILLED}


def test_a_killed_trial_finds_its_checkpoint_when_it_is_tried_again(engine: EngineUnderTest) -> None:
    controller = engine.controller()
    (done,) = engine.finish(controller, engine.trial("resume"))
    assert (done.state, done.attempt, done.result) == (JobState.FINISHED, 2, {"found": "done so far"})


def test_the_history_of_a_job_replays_to_its_state(either_engine: EngineUnderTest) -> None:
    controller = either_engine.controller()
    job = either_engine.submit("sh", "-c", "exit 1", retry=RetryRule(failed=1))
    (done,) = either_engine.finish(controller, job)
    with either_engine.store.read() as tx:
        told = [
            e.body for e in events_after(tx, job.project_id, 0) if e.subject == job.id and "what" in e.body
        ]
    life = replay(job.spec.retry, [from_json(dict(body)) for body in told])
    assert (life.state, life.attempt, life.exit_code, life.reason, life.usage) == (
        done.state,
        done.attempt,
        done.exit_code,
        done.reason,
        done.usage,
    )
