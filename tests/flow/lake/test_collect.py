"""What is collected, what never is, and how what was dropped comes back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, rule
from sqlalchemy import update
from tests.flow.lake import traced_jobs as jobs
from tests.flow.lake.conftest import People

from easel.declare.job import Command, JobSpec
from easel.errors import Conflict, NotFound
from easel.flow.jobs import outputs, replay
from easel.flow.jobs.submit import submit_job
from easel.flow.lake import browse, upload
from easel.flow.lake.checkout import checkout
from easel.flow.lake.collect import collect, drop_unused
from easel.ids import JobId
from easel.lake.blobs.local import LocalBlobs
from easel.lake.blobs.store import Incoming, put
from easel.lake.digest import Digest, digest_of
from easel.lake.replay import ReplaySource, jobs_to_replay
from easel.records.job import StoredFile
from easel.records.lake import UploadItem
from easel.run.entries import Kept
from easel.store.lake import blob_index
from easel.store.schema.lake import artifacts, objects

NOW = timedelta(0)


def stored(people: People) -> int:
    return sum(o.size for o in people.lake.blobs.objects())


def read(people: People, ref: str) -> bytes:
    with people.lake.store.read() as tx:
        found = browse.open_file(tx, people.ana, ref)
    from easel.flow.lake.checkout import read_blob

    return b"".join(read_blob(people.lake.blobs, found.place))


def test_a_young_upload_is_left_alone_and_an_abandoned_one_is_collected(people: People) -> None:
    with people.lake.store.write() as tx:
        session = upload.start(tx, people.ana)
        upload.add_files(tx, people.ana, session.id, [UploadItem("/a", 300_000, digest_of(bytes(300_000)))])
    upload.announce(people.lake, people.ana, session.id, [Incoming(digest_of(bytes(300_000)), 300_000)])
    assert collect(people.lake).uploads == 0
    assert len(list(people.lake.blobs.stages())) == 1
    assert collect(people.lake, NOW, NOW).uploads == 1
    assert list(people.lake.blobs.stages()) == []
    with people.lake.store.write() as tx, pytest.raises(Conflict):
        upload.commit(tx, people.ana, session.id)


def test_bytes_of_a_pending_upload_and_of_every_version_are_kept(people: People) -> None:
    people.put(people.ana, {"/a": b"one"})
    people.put(people.ana, {"/a": b"two"})
    with people.lake.store.write() as tx:
        browse.delete(tx, people.ana, "/a")
    session = people.send(people.ana, {"/b": b"pending"})
    collect(people.lake, NOW)
    assert read(people, "/a:1") == b"one"
    assert stored(people) == 13
    upload.abort(people.lake, people.ana, session.id)
    collect(people.lake, NOW)
    assert stored(people) == 6


def test_bytes_without_a_row_are_found_and_removed_when_old(people: People) -> None:
    put(people.lake.blobs, "lost", b"a crash came before the row")
    assert collect(people.lake).objects == 0
    assert collect(people.lake, NOW).objects == 1
    assert stored(people) == 0


def test_a_pack_that_is_mostly_garbage_is_written_anew(people: People) -> None:
    people.put(people.ana, {f"/{i}": bytes([i]) * 100 for i in range(10)})
    people.make_set(people.ana, "kept", "/3")
    with people.lake.store.write() as tx:
        assert drop_unused(tx, people.root, "/", NOW, really=True).files == 9
    for _ in range(3):
        collect(people.lake, NOW)
    assert stored(people) == 100
    assert read(people, "/3") == bytes([3]) * 100


def test_unused_files_are_told_first_and_used_ones_stay(people: People) -> None:
    people.put(people.ana, {"/used": b"u", "/read": b"r", "/free/a": b"f"})
    people.make_set(people.ana, "standing", "/used")
    people.make_set(people.ana, "input", "/read")
    with people.lake.store.write() as tx:
        jobs.register_job(tx, people.ana, JobId("job_1"), ["input"])
        from easel.flow.lake.file_set import delete_file_set

        delete_file_set(tx, people.ana, "input")
        told = drop_unused(tx, people.root, "/", NOW, really=False)
        assert told.examples == ("/free/a:1",)
        assert drop_unused(tx, people.root, "/", timedelta(days=1), really=True).files == 0
        assert drop_unused(tx, people.root, "/", NOW, really=True).files == 1
    collect(people.lake, NOW)
    assert read(people, "/read") == b"r"
    with pytest.raises(NotFound):
        read(people, "/free/a")
    with pytest.raises(Conflict, match="given up"):
        read(people, "/free/a:1")
    people.put(people.ana, {"/free/a": b"again"})
    assert read(people, "/free/a:2") == b"again"


def made_by_job(people: People, name: str, content: bytes, *inputs: str) -> str:
    """A set as the engine would have made it."""
    with people.lake.store.write() as tx:
        spec = JobSpec(name, Command(("true",)), input=inputs[0] if inputs else None)
        job = submit_job(tx, people.ana, spec)
    session = people.send(people.ana, {f"/{name}": content})
    with people.lake.store.write() as tx:
        return str(jobs.attach_output(tx, people.ana, job.id, session.id, name))


def test_a_dropped_set_is_regenerated_by_the_jobs_that_made_it(people: People) -> None:
    people.put(people.ana, {"/raw": b"raw"})
    people.make_set(people.ana, "raw", "/raw")
    first = made_by_job(people, "first", b"first result", "raw")
    second = made_by_job(people, "second", b"second result", "first")
    with people.lake.store.write() as tx:
        assert len(replay.plan(tx, people.ana, second).jobs) == 1
        replay.drop(tx, people.root, second)
        replay.drop(tx, people.root, first)
        assert [job.name for job in replay.plan(tx, people.ana, second).jobs] == ["first", "second"]
        with pytest.raises(Conflict, match="not made by a job"):
            replay.drop(tx, people.root, "raw")
    collect(people.lake, NOW)
    assert stored(people) == 3
    with people.lake.store.write() as tx:
        assert replay.restore(tx, people.ana, second) is False
        assert replay.replay_next(tx, people.ana, second) is not None  # `first` runs again
    people.put(people.ana, {"/elsewhere": b"first result"})
    with people.lake.store.write() as tx:
        assert replay.replay_next(tx, people.ana, second) is not None  # now `second`
    people.put(people.ana, {"/elsewhere2": b"second result"})
    with people.lake.store.write() as tx:
        assert replay.replay_next(tx, people.ana, second) is None
    assert read(people, "/second") == b"second result"
    assert read(people, "/first") == b"first result"


def test_a_long_chain_of_jobs_is_planned_in_order() -> None:
    def look(node: int) -> ReplaySource:
        return ReplaySource(str(node), node > 0, node * 10 if node else None, [node - 1] if node else [])

    assert jobs_to_replay(5000, look) == [10 * i for i in range(1, 5001)]


def test_what_other_sets_hold_is_not_dropped(people: People) -> None:
    made = made_by_job(people, "out", b"shared")
    people.make_set(people.ana, "copy", "/@out")
    with people.lake.store.write() as tx:
        replay.drop(tx, people.root, made)
    collect(people.lake, NOW)
    assert read(people, "/out") == b"shared"


class Collector(RuleBasedStateMachine):
    """Whatever two projects do, and whenever the collector comes: everything that can be named can be read,
    and neither project changes what the other reads."""

    people: People
    numbers: Iterator[int]
    contents = Bundle("contents")

    @initialize()
    def begin(self) -> None:
        self.files: dict[tuple[str, str], list[bytes]] = {}
        self.sets: dict[str, dict[str, bytes]] = {}
        self.prefix = f"/{next(self.numbers)}"

    @rule(who=st.sampled_from(["ana", "eve"]), name=st.sampled_from("abc"), content=st.binary(max_size=3))
    def put(self, who: str, name: str, content: bytes) -> None:
        path = f"{self.prefix}/{name}"
        self.people.put(getattr(self.people, who), {path: content})
        self.files.setdefault((who, path), []).append(content)

    @rule(target=contents, name=st.sampled_from("abc"), content=st.binary(max_size=3))
    def send(self, name: str, content: bytes) -> str:
        return self.people.send(self.people.ana, {f"{self.prefix}/p{name}": content}).id

    @rule(session=consumes(contents))
    def abort(self, session: str) -> None:
        upload.abort(self.people.lake, self.people.ana, session)

    @rule()
    def collect(self) -> None:
        with self.people.lake.store.write() as tx:
            drop_unused(tx, self.people.root, "/nothing-here/", NOW, really=True)
        collect(self.people.lake, NOW)

    @rule()
    def make_set(self) -> None:
        mine = {path: v[-1] for (who, path), v in self.files.items() if who == "ana"}
        if mine:
            name = f"s{next(self.numbers)}"
            self.people.make_set(self.people.ana, name, *mine)
            self.sets[name] = mine

    @rule()
    def read_everything(self) -> None:
        with self.people.lake.store.read() as tx:
            for (who, path), versions in self.files.items():
                for number, content in enumerate(versions, 1):
                    found = browse.open_file(tx, getattr(self.people, who), f"{path}:{number}")
                    assert found.entry.digest == digest_of(content)
                    assert b"".join(self._bytes(found)) == content
        for name, content_of in self.sets.items():
            target = self.people.folder / f"out{next(self.numbers)}"
            checkout(self.people.lake, self.people.ana, name, target)
            assert {
                f"/{p.relative_to(target)}": p.read_bytes() for p in target.rglob("*") if p.is_file()
            } == content_of

    def _bytes(self, found: browse.Readable) -> Iterator[bytes]:
        from easel.flow.lake.checkout import read_blob

        return read_blob(self.people.lake.blobs, found.place)


def test_nothing_that_can_be_named_is_ever_collected(people: People, tmp_path: Path) -> None:
    if not people.lake.store.is_sqlite:
        pytest.skip("one database is enough for a random walk")
    from itertools import count

    from hypothesis.stateful import run_state_machine_as_test

    numbers = count()

    class State(Collector):
        pass

    State.people, State.numbers = people, numbers
    quick = settings(
        max_examples=15, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(State, settings=quick)


def age(people: People) -> None:
    """Everything stored so far was stored long ago."""
    with people.lake.store.write() as tx:
        tx.execute(update(objects).values(claimed_at=tx.now - timedelta(days=9)))
    for stored_object in people.lake.blobs.objects():
        path = cast(LocalBlobs, people.lake.blobs).path(stored_object.digest)
        assert path is not None
        os.utime(path, (1, 1))


def give_up(people: People, path: str) -> None:
    with people.lake.store.write() as tx:
        tx.execute(update(artifacts).where(artifacts.c.name == path).values(dropped_at=tx.now))


def test_bytes_that_a_job_leaves_again_are_not_collected_before_its_rows_are_written(people: People) -> None:
    people.put(people.ana, {"/a": b"the same result"})
    give_up(people, "/a")
    age(people)
    digest = digest_of(b"the same result")
    kept = Kept([StoredFile("/out", digest.hex(), 15)], {digest.hex(): b"the same result"})
    assert outputs.land(people.lake, [kept], "jobs-1") == [], "it is stored already"
    collect(people.lake)
    with people.lake.store.read() as tx:
        place = blob_index.locate(tx, [digest])[digest]
    assert b"".join(people.lake.blobs.read(Digest(place.object), place.offset, place.size)) == (
        b"the same result"
    )


def test_new_bytes_of_a_job_are_claimed_before_they_are_written(people: People) -> None:
    digest = digest_of(b"new")
    people.put(people.ana, {"/a": b"new"})
    give_up(people, "/a")
    age(people)
    with people.lake.store.write() as tx:
        blob_index.forget_unreferenced(tx, tx.now)
        blob_index.doom_empty(tx, tx.now)
    (landed,) = outputs.land(people.lake, [Kept([], {digest.hex(): b"new"})], "jobs-1")
    assert landed.digest == digest, "the very object that is doomed"
    os.utime(cast(LocalBlobs, people.lake.blobs).path(digest) or Path(), (1, 1))
    collect(people.lake)
    assert people.lake.blobs.size(digest) == 3


def test_an_object_that_an_agent_puts_again_after_it_was_doomed_stays(people: People) -> None:
    digest = put(people.lake.blobs, "agent-1", b"once")
    with people.lake.store.write() as tx:
        outputs.record_objects(tx, [Incoming(digest, 4)])
        blob_index.forget_unreferenced(tx, tx.now + timedelta(1))
        blob_index.doom_empty(tx, tx.now + timedelta(1))
    put(people.lake.blobs, "agent-2", b"once")
    collect(people.lake)
    assert people.lake.blobs.size(digest) == 4
    with people.lake.store.write() as tx:
        outputs.record_objects(tx, [Incoming(digest, 4)])
        assert digest in blob_index.locate(tx, [digest])
