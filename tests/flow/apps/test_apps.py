"""Declare, feed, refine, learn on the real engine, infer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from easel.declare.page import PageRequest
from easel.errors import Conflict, InvalidInput, NotFound
from easel.flow.apps.declare import declare_app, delete_app
from easel.flow.apps.feed import feed
from easel.flow.apps.feed_files import PATIENCE, feed_files
from easel.flow.apps.gather import gather
from easel.flow.apps.infer import Models, infer
from easel.flow.apps.next_trial import next_trial, settle
from easel.flow.apps.refine import browse, refine, undo_refine
from easel.flow.lake.ingest import ingest_folder
from easel.flow.lake.upload import commit
from easel.records.app import Fed, FedExample
from easel.records.decision import LeaveIdle
from easel.records.identity import Caller
from easel.records.job import JobState
from easel.schedule.policies import named
from easel.schedule.state import Device
from easel.store import app_trials, apps, identity
from easel.store.engine import Tx
from easel.testing.engine import Engine

PROGRAM = "input: {size: number, town: category}\noutput: [no, yes]"
DEVICE = Device("core")


def rows(n: int, seed: int = 0) -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(seed)
    sizes = rng.normal(size=n)
    return [({"size": float(s), "town": "Bern"}, "yes" if s > 0 else "no") for s in sizes]


def fed(tx: Tx, caller: Caller, name: str = "flowers") -> list[FedExample]:
    return list(browse(tx, caller, name, PageRequest(limit=500)).items)


def declared(engine: Engine, name: str = "flowers") -> Caller:
    ana = engine.caller()
    with engine.store.write() as tx:
        declare_app(tx, ana, name, PROGRAM)
    return ana


def test_the_same_pair_is_kept_once_however_often_it_is_fed(engine: Engine) -> None:
    ana = declared(engine)
    assert feed(engine.lake, ana, "flowers", rows(20)) == Fed(20, 0, 20)
    assert feed(engine.lake, ana, "flowers", [*rows(20), *rows(5, seed=1), *rows(5, seed=1)]) == Fed(
        5, 25, 25
    )
    with engine.store.read() as tx:
        app = apps.find(tx, ana.project_id, "flowers")
        assert len(fed(tx, ana)) == 25
    assert app.examples_set == "flowers-examples:2"
    assert app.summary is not None
    assert app.summary["examples"] == 25


def test_one_wrong_pair_refuses_the_feed_and_names_the_pair(engine: Engine) -> None:
    ana = declared(engine)
    wrong = [*rows(3), ({"size": "tall", "town": "Bern"}, "no")]
    with pytest.raises(InvalidInput, match=r"pair 4: input\.size: expected a number, found 'tall'"):
        feed(engine.lake, ana, "flowers", wrong)
    with engine.store.read() as tx:
        assert fed(tx, ana) == []


def test_examples_are_switched_off_and_on_and_the_switch_is_undone(engine: Engine) -> None:
    ana = declared(engine)
    feed(engine.lake, ana, "flowers", rows(6))
    with engine.store.write() as tx:
        some = [example.digest for example in fed(tx, ana)][:2]
        assert sorted(refine(tx, ana, "flowers", some, on=False)) == sorted(some)
        assert refine(tx, ana, "flowers", some, on=False) == []
        assert sum(e.on for e in fed(tx, ana)) == 4
        assert sorted(undo_refine(tx, ana, "flowers")) == sorted(some)
        assert all(e.on for e in fed(tx, ana))
        with pytest.raises(NotFound, match="nothing to undo"):
            undo_refine(tx, ana, "flowers")


def test_an_app_of_another_project_does_not_exist(engine: Engine) -> None:
    declared(engine)
    eve = engine.caller("eve", project="bio")
    with pytest.raises(NotFound):
        feed(engine.lake, eve, "flowers", rows(4))


def test_nothing_is_started_before_two_classes_were_fed_nor_when_all_is_off(
    engine: Engine, tmp_path: Path
) -> None:
    ana = declared(engine)
    feed(engine.lake, ana, "flowers", [pair for pair in rows(20) if pair[1] == "yes"])
    with engine.store.write() as tx:
        assert isinstance(next_trial(tx, named("easel"), DEVICE, 0.0)[0], LeaveIdle)
    with pytest.raises(Conflict, match=r"two examples each of at least two classes \(.* \d+ yes\)"):
        infer(engine.lake, Models(tmp_path), ana, "flowers", [{"size": 1.0, "town": "Bern"}])
    feed(engine.lake, ana, "flowers", rows(20))
    with engine.store.write() as tx:
        refine(tx, ana, "flowers", [e.digest for e in fed(tx, ana)], on=False)
        assert isinstance(next_trial(tx, named("easel"), DEVICE, 0.0)[0], LeaveIdle)


def stored(engine: Engine, caller: Caller, folder: Path, files: dict[str, list[tuple[Any, Any]]]) -> None:
    """Pairs as files of the lake, below /in/."""
    for name, pairs in files.items():
        lines = [json.dumps({"input": one, "output": answer}) for one, answer in pairs]
        (folder / name).write_text("\n".join(lines))
    session = ingest_folder(engine.lake, caller, folder, "/in/")
    with engine.store.write() as tx:
        commit(tx, caller, session.id)


def test_nothing_is_learned_from_half_a_feed_unless_the_rest_never_comes(
    engine: Engine, tmp_path: Path
) -> None:
    ana = declared(engine)
    (tmp_path / "in").mkdir()
    stored(engine, ana, tmp_path / "in", {"a.jsonl": rows(20), "b.jsonl": rows(20, seed=1)})
    assert feed_files(engine.lake, ana, "flowers", "/in/a.jsonl", more=True).new == 20
    with engine.store.write() as tx:
        now = tx.now.timestamp()
        assert isinstance(next_trial(tx, named("easel"), DEVICE, now)[0], LeaveIdle)
        late = gather(tx, DEVICE, now + PATIENCE.total_seconds() + 1)
        assert late is not None
        assert [ready.examples for ready in late.ready.values()] == [20]
    assert feed_files(engine.lake, ana, "flowers", "/in/b.jsonl").new == 20
    with engine.store.write() as tx:
        assert next_trial(tx, named("easel"), DEVICE, tx.now.timestamp())[1] is not None


def test_a_last_part_that_is_refused_ends_the_waiting_too(engine: Engine, tmp_path: Path) -> None:
    ana = declared(engine)
    (tmp_path / "in").mkdir()
    wrong = [({"size": "tall", "town": "Bern"}, "no")]
    stored(engine, ana, tmp_path / "in", {"a.jsonl": rows(20), "b.jsonl": wrong})
    feed_files(engine.lake, ana, "flowers", "/in/a.jsonl", more=True)
    with pytest.raises(InvalidInput, match="expected a number"):
        feed_files(engine.lake, ana, "flowers", "/in/b.jsonl")
    with engine.store.write() as tx:
        assert next_trial(tx, named("easel"), DEVICE, tx.now.timestamp())[1] is not None


def test_what_an_upload_brought_is_fed_and_nothing_beside_it(engine: Engine, tmp_path: Path) -> None:
    ana = declared(engine)
    for name, seed in (("one", 0), ("two", 1)):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.jsonl").write_text(
            "\n".join(json.dumps({"input": one, "output": answer}) for one, answer in rows(10, seed))
        )
    sessions = [ingest_folder(engine.lake, ana, tmp_path / name, "/in/") for name in ("one", "two")]
    with pytest.raises(Conflict, match="commit it first"):
        feed_files(engine.lake, ana, "flowers", f"upload:{sessions[0].id}")
    with engine.store.write() as tx:
        for session in sessions:
            commit(tx, ana, session.id)
    assert feed_files(engine.lake, ana, "flowers", f"upload:{sessions[1].id}") == Fed(10, 0, 10)
    ben = engine.caller("ben")
    with pytest.raises(NotFound, match="you have no upload"):
        feed_files(engine.lake, ben, "flowers", f"upload:{sessions[0].id}")


def test_asking_before_there_is_a_model_says_so(engine: Engine, tmp_path: Path) -> None:
    ana = declared(engine)
    with pytest.raises(Conflict, match="no model yet"):
        infer(engine.lake, Models(tmp_path), ana, "flowers", [{"size": 1.0, "town": "Bern"}])


def test_an_app_whose_owner_left_keeps_nobody_else_waiting(engine: Engine) -> None:
    ana = declared(engine)
    ben = engine.caller("ben")
    with engine.store.write() as tx:
        declare_app(tx, ben, "others", PROGRAM)
    feed(engine.lake, ana, "flowers", rows(10))
    feed(engine.lake, ben, "others", rows(10))
    with engine.store.write() as tx:
        identity.remove_member(tx, ana.project_id, ana.user.id)
        _, job = next_trial(tx, named("easel"), DEVICE, 0.0)
        assert job is not None
        assert job.user_id == ben.user.id


@pytest.mark.slow
def test_an_app_learns_on_the_engine_and_answers_with_its_best_model(engine: Engine, tmp_path: Path) -> None:
    ana = declared(engine)
    feed(engine.lake, ana, "flowers", rows(60))
    controller = engine.controller()
    policy = named("easel")
    for step in range(2):
        with engine.store.write() as tx:
            _, job = next_trial(tx, policy, DEVICE, float(step))
        assert job is not None
        (ended,) = engine.finish(controller, job, seconds=240)
        assert ended.state is JobState.FINISHED, ended.reason
        with engine.store.write() as tx:
            assert len(settle(tx)) == 1
            assert settle(tx) == []
    found = infer(
        engine.lake,
        Models(tmp_path),
        ana,
        "flowers",
        [{"size": 2.0, "town": "Bern"}, {"size": -2.0, "town": "Bern"}],
    )
    assert [answer["label"] for answer in found.answers] == ["yes", "no"]
    assert found.model.startswith("flowers-model:")
    assert found.quality > 0.8
    with engine.store.write() as tx:
        names = [t.decision["candidate"] for t in app_trials.trials(tx)]
        assert len(set(names)) == 2
        delete_app(tx, ana, "flowers")
        assert app_trials.trials(tx) == []
