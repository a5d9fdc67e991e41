"""Old logs, events and outputs are told first, then given up; who holds what is reported."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import func, select, update

from easel.declare.roles import Role
from easel.errors import Conflict, InvalidInput
from easel.flow.jobs import files
from easel.flow.operate.retention import apply_rules, give_up, keep_rule, remove_rule, rules_of
from easel.flow.operate.storage import storage_report
from easel.records.retention import Leaving, Retention
from easel.store import identity, job_logs
from easel.store.schema.events import events
from easel.store.schema.jobs import jobs
from easel.testing.engine import EngineUnderTest, running

DAYS = timedelta(days=1)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineUnderTest]:
    """Three jobs that ended long ago: one tagged `scratch`, one whose output another one read."""
    with running(tmp_path_factory.mktemp("retention") / "home") as made:
        ana = made.caller()
        with made.store.write() as tx:
            identity.put_member(tx, ana.project_id, ana.user.id, Role.ADMIN)
        texts = made.upload({"a.txt": b"to be or not to be"}, "texts")
        write = "echo said; find input/ -type f -exec cat {} + > $EASEL_OUTPUT/copy.txt"
        loop = made.controller()
        scratch = made.submit(
            "sh",
            "-c",
            write + "; echo s >> $EASEL_OUTPUT/copy.txt",
            input=texts,
            output_set="scratch",
            tags={"scratch": "yes"},
        )
        read = made.submit("sh", "-c", write, input=texts, output_set="read")
        ended = made.finish(loop, scratch, read)
        assert [job.reason for job in ended] == [None, None], made.home
        reader = made.submit("sh", "-c", "echo read", input="read")
        made.finish(loop, reader)
        with made.store.write() as tx:
            long_ago = tx.now - 100 * DAYS
            tx.execute(update(jobs).values(ended_at=long_ago))
            tx.execute(update(events).values(at=long_ago))
        yield made


def _lines(engine: EngineUnderTest) -> list[int]:
    with engine.store.read() as tx:
        found = tx.execute(select(jobs.c.id, jobs.c.attempt).order_by(jobs.c.seq)).all()
        return [len(job_logs.read_lines(tx, row.id, row.attempt, 0, 10)) for row in found]


def test_logs_are_told_then_given_up_by_tag_and_by_age(engine: EngineUnderTest) -> None:
    ana = engine.caller()
    tagged = Retention(Leaving.LOGS, 90 * DAYS, "scratch=yes")
    with engine.store.write() as tx:
        told = give_up(tx, ana, tagged, really=False)
        assert give_up(tx, ana, Retention(Leaving.LOGS, 200 * DAYS), really=True).count == 0
        assert give_up(tx, ana, Retention(Leaving.LOGS, 90 * DAYS, "scratch=no"), really=True).count == 0
    assert (told.count, told.bytes > 0, len(told.examples)) == (1, True, 1)
    assert _lines(engine) == [1, 1, 1]
    with engine.store.write() as tx:
        assert give_up(tx, ana, tagged, really=True) == told
    assert _lines(engine) == [0, 1, 1]
    with engine.store.write() as tx, pytest.raises(InvalidInput, match="one day"):
        give_up(tx, ana, Retention(Leaving.LOGS, DAYS / 2), really=True)


def test_outputs_that_no_job_reads_and_that_can_be_made_again_are_given_up(engine: EngineUnderTest) -> None:
    ana = engine.caller()
    with engine.store.write() as tx:
        found = give_up(tx, ana, Retention(Leaving.OUTPUTS, 90 * DAYS), really=True)
        assert (found.examples[0], "read:1" in found.examples, found.kept) == ("scratch:1", False, 0)
        with pytest.raises(Conflict, match="given up"):
            files.pin_set(tx, ana, "scratch:1")
        assert files.pin_set(tx, ana, "read:1").artifact.dropped_at is None


def test_a_rule_is_applied_once_a_day_and_only_for_an_admin(engine: EngineUnderTest) -> None:
    ana, ben = engine.caller(), engine.caller("ben")
    with engine.store.write() as tx:
        made = keep_rule(tx, ana, Retention(Leaving.EVENTS, 90 * DAYS))
        keep_rule(tx, ben, Retention(Leaving.LOGS, 90 * DAYS))
        old = tx.execute(select(func.count()).where(events.c.at < tx.now - 90 * DAYS)).scalar_one()
    assert old > 5
    assert (apply_rules(engine.store), apply_rules(engine.store)) == (2, 0)
    assert _lines(engine) == [0, 1, 1]  # ben is no admin
    with engine.store.write() as tx:
        left = tx.execute(
            select(func.count()).where(
                events.c.at < tx.now - 90 * DAYS, events.c.project_id == ana.project_id
            )
        ).scalar_one()
        assert left == 0
        remove_rule(tx, ana, made.id)
        assert [each.created_by for each in rules_of(tx, ana)] == [ben.user.id]


def test_the_report_says_who_holds_what(engine: EngineUnderTest) -> None:
    with engine.store.read() as tx:
        found = storage_report(tx, engine.caller().project_id)
    assert [(each.user, each.files > 0, each.log_bytes > 0) for each in found.holders] == [
        ("ana", True, True)
    ]
    assert found.stored_bytes > 0
