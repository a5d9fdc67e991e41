"""Declare, feed, refine, learn on the real engine, infer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from easel.clock import Clock
from easel.declare.page import PageRequest
from easel.declare.resources import Resources
from easel.declare.styles import ColumnStyle
from easel.errors import Conflict, InvalidInput, NotFound
from easel.flow.apps.declare import change_app, change_program, declare_app, delete_app
from easel.flow.apps.ensemble import combine_if_due
from easel.flow.apps.feed import feed
from easel.flow.apps.feed_files import PATIENCE, feed_files
from easel.flow.apps.infer import Models, infer
from easel.flow.apps.refine import browse, refine, undo_refine
from easel.flow.apps.rescore import kept_scores
from easel.flow.apps.trial_job import learn_spec
from easel.flow.jobs.submit import submit_job
from easel.flow.lake.ingest import ingest_folder
from easel.flow.lake.upload import commit
from easel.match.candidate import Candidate
from easel.records.app import Fed, FedExample
from easel.records.identity import Caller
from easel.records.job import Job, JobState
from easel.store import app_trials, apps, identity, jobs
from easel.store.engine import Tx
from easel.testing.engine import EngineUnderTest
from easel.testing.pool import PoolUnderTest

PROGRAM = "input: {size: number, town: category}\noutput: [no, yes]"


def rows(n: int, seed: int = 0) -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(seed)
    sizes = rng.normal(size=n)
    return [({"size": float(s), "town": "Bern"}, "yes" if s > 0 else "no") for s in sizes]


def fed(tx: Tx, caller: Caller, name: str = "flowers") -> list[FedExample]:
    return list(browse(tx, caller, name, PageRequest(limit=500)).items)


def pool_of(engine: EngineUnderTest) -> PoolUnderTest:
    """With room for one trial."""
    pool = PoolUnderTest(engine.lake)
    pool.device()
    return pool


def declared(engine: EngineUnderTest, name: str = "flowers") -> Caller:
    ana = engine.caller()
    with engine.store.write() as tx:
        declare_app(tx, ana, name, PROGRAM)
    return ana


def test_the_same_pair_is_kept_once_however_often_it_is_fed(engine: EngineUnderTest) -> None:
    ana = declared(engine)
    assert feed(engine.lake, ana, "flowers", rows(20)) == Fed(20, 0, 20)
    assert feed(engine.lake, ana, "flowers", [*rows(20), *rows(5, seed=1), *rows(5, seed=1)]) == Fed(
        5, 25, 25, notes=("5 of them repeat another one of this feed: each example counts once",)
    )
    with engine.store.read() as tx:
        app = apps.find(tx, ana.project_id, "flowers")
        assert len(fed(tx, ana)) == 25
    assert app.examples_set == "flowers-examples:2"
    assert app.summary is not None
    assert app.summary["examples"] == 25


def test_one_example_is_one_example_in_whatever_form_it_is_fed(engine: EngineUnderTest) -> None:
    ana = declared(engine)
    assert feed(engine.lake, ana, "flowers", [({"size": 71, "town": "Bern"}, "yes")]) == Fed(1, 0, 1)
    forms = [
        ({"size": "71", "town": "Bern"}, "yes"),
        ({"size": 71.0, "town": " Bern "}, "yes"),
        (["71.0", "Bern"], "yes"),
    ]
    assert feed(engine.lake, ana, "flowers", forms) == Fed(0, 3, 1)


def test_one_wrong_pair_refuses_the_feed_and_names_the_pair(engine: EngineUnderTest) -> None:
    ana = declared(engine)
    wrong = [*rows(3), ({"size": "tall", "town": "Bern"}, "no")]
    with pytest.raises(InvalidInput, match=r"pair 4: input\.size: expected a number, found 'tall'"):
        feed(engine.lake, ana, "flowers", wrong)
    with engine.store.read() as tx:
        assert fed(tx, ana) == []


def test_examples_are_switched_off_and_on_and_the_switch_is_undone(engine: EngineUnderTest) -> None:
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


def test_an_app_of_another_project_does_not_exist(engine: EngineUnderTest) -> None:
    declared(engine)
    eve = engine.caller("eve", project="bio")
    with pytest.raises(NotFound):
        feed(engine.lake, eve, "flowers", rows(4))


def test_nothing_is_started_before_two_classes_were_fed_nor_when_all_is_off(
    engine: EngineUnderTest, tmp_path: Path
) -> None:
    ana = declared(engine)
    feed(engine.lake, ana, "flowers", [pair for pair in rows(20) if pair[1] == "yes"])
    pool = pool_of(engine)
    assert pool.turn() == []
    with pytest.raises(Conflict, match=r"two examples each of at least two classes \(.* \d+ yes\)"):
        infer(engine.lake, Models(tmp_path), ana, "flowers", [{"size": 1.0, "town": "Bern"}])
    feed(engine.lake, ana, "flowers", rows(20))
    with engine.store.write() as tx:
        refine(tx, ana, "flowers", [e.digest for e in fed(tx, ana)], on=False)
    assert pool.turn() == []
    pool.restart()
    assert pool.turn() == []


def stored(
    engine: EngineUnderTest, caller: Caller, folder: Path, files: dict[str, list[tuple[Any, Any]]]
) -> None:
    """Pairs as files of the lake, below /in/."""
    for name, pairs in files.items():
        lines = [json.dumps({"input": one, "output": answer}) for one, answer in pairs]
        (folder / name).write_text("\n".join(lines))
    session = ingest_folder(engine.lake, caller, folder, "/in/")
    with engine.store.write() as tx:
        commit(tx, caller, session.id)


def test_nothing_is_learned_from_half_a_feed_unless_the_rest_never_comes(
    engine: EngineUnderTest, tmp_path: Path
) -> None:
    ana = declared(engine)
    (tmp_path / "in").mkdir()
    stored(engine, ana, tmp_path / "in", {"a.jsonl": rows(20), "b.jsonl": rows(20, seed=1)})
    assert feed_files(engine.lake, ana, "flowers", "/in/a.jsonl", more=True).new == 20
    pool, clock = pool_of(engine), Later(engine.store.clock)
    assert pool.turn() == []
    engine.store.clock = clock
    clock.by += PATIENCE.total_seconds() + 1
    (job,) = pool.turn()
    pool.end(job, 0.9)
    clock.by = 0.0
    assert feed_files(engine.lake, ana, "flowers", "/in/b.jsonl").new == 20
    assert len(pool.turn()) == 1


@dataclass
class Later:
    """A clock that is `by` seconds ahead of another."""

    clock: Clock
    by: float = 0.0

    def now(self) -> datetime:
        return self.clock.now() + timedelta(seconds=self.by)

    def monotonic(self) -> float:
        return self.clock.monotonic() + self.by

    def sleep(self, seconds: float) -> None:
        self.clock.sleep(seconds)


def test_a_last_part_that_is_refused_ends_the_waiting_too(engine: EngineUnderTest, tmp_path: Path) -> None:
    ana = declared(engine)
    (tmp_path / "in").mkdir()
    wrong = [({"size": "tall", "town": "Bern"}, "no")]
    stored(engine, ana, tmp_path / "in", {"a.jsonl": rows(20), "b.jsonl": wrong})
    feed_files(engine.lake, ana, "flowers", "/in/a.jsonl", more=True)
    with pytest.raises(InvalidInput, match="expected a number"):
        feed_files(engine.lake, ana, "flowers", "/in/b.jsonl")
    assert len(pool_of(engine).turn()) == 1


def test_what_an_upload_brought_is_fed_and_nothing_beside_it(engine: EngineUnderTest, tmp_path: Path) -> None:
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


def test_refused_rows_keep_their_numbers_and_their_file_its_way_of_writing(
    engine: EngineUnderTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("easel.flow.apps.feed_files.BATCH_ROWS", 4)
    ana = declared(engine)
    (tmp_path / "in").mkdir()
    cells = ["1,5", "2,25", "3", "4", "tall", "6", "7", "8", "9", "10", "short", "1,125"]
    table = "".join(f"{cell};Bern;no\n" for cell in cells)
    (tmp_path / "in" / "a.csv").write_text(f"size;town;y\n{table}")
    session = ingest_folder(engine.lake, ana, tmp_path / "in", "/in/")
    with engine.store.write() as tx:
        commit(tx, ana, session.id)
    found = feed_files(engine.lake, ana, "flowers", "/in/a.csv", skip_bad=True)
    assert [one.pair for one in found.refused] == [5, 11]
    assert feed(engine.lake, ana, "flowers", [({"size": "1,125", "town": "Bern"}, "no")]).known == 1
    with engine.store.read() as tx:
        assert apps.find(tx, ana.project_id, "flowers").styles == {"input.size": {"decimal": ","}}


def test_a_unit_that_a_later_feed_tells_is_kept(engine: EngineUnderTest) -> None:
    ana = declared(engine)
    for size, style in ((2.5, ColumnStyle(".")), (3.5, ColumnStyle(".", "cm")), (4.5, ColumnStyle(","))):
        feed(
            engine.lake,
            ana,
            "flowers",
            [({"size": size, "town": "Bern"}, "no")],
            styles={"input.size": style, "input.other": style, "x" * 5000: style},
        )
    with engine.store.read() as tx:
        kept = apps.find(tx, ana.project_id, "flowers").styles
    assert kept == {"input.size": {"decimal": ".", "unit": "cm"}}
    assert feed(engine.lake, ana, "flowers", [({"size": "4.5 cm", "town": "Bern"}, "no")]).known == 1


def test_asking_before_there_is_a_model_says_so(engine: EngineUnderTest, tmp_path: Path) -> None:
    ana = declared(engine)
    with pytest.raises(Conflict, match="no model yet"):
        infer(engine.lake, Models(tmp_path), ana, "flowers", [{"size": 1.0, "town": "Bern"}])


def test_an_app_whose_owner_left_keeps_nobody_else_waiting(engine: EngineUnderTest) -> None:
    ana = declared(engine)
    ben = engine.caller("ben")
    with engine.store.write() as tx:
        declare_app(tx, ben, "others", PROGRAM)
    feed(engine.lake, ana, "flowers", rows(10))
    feed(engine.lake, ben, "others", rows(10))
    with engine.store.write() as tx:
        identity.remove_member(tx, ana.project_id, ana.user.id)
    (job,) = pool_of(engine).turn()
    assert job.user_id == ben.user.id


@pytest.mark.slow
def test_an_app_learns_on_the_engine_and_answers_with_its_best_model(
    engine: EngineUnderTest, tmp_path: Path
) -> None:
    ana = declared(engine)
    feed(engine.lake, ana, "flowers", rows(60))
    controller, pool = engine.controller(), PoolUnderTest(engine.lake)
    engine.turn_until(controller, lambda: controller.connected)
    first = pool.turn()
    assert len(first) == 2
    for ended in engine.finish(controller, *first, seconds=240):
        assert ended.state is JobState.FINISHED, ended.reason
    pool.turn()
    with engine.store.read() as tx:
        assert sum(trial.ended for trial in app_trials.trials(tx)) == 2
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
        assert len(set(names)) == len(names) >= 2
        change_app(tx, ana, "flowers", "roc_auc")
    again = infer(engine.lake, Models(tmp_path), ana, "flowers", [{"size": 2.0, "town": "Bern"}])
    assert again.model.startswith("flowers-model:"), "a model goes on serving while the metric changes"
    assert 0.8 < again.quality <= 1.0
    with engine.store.write() as tx:
        delete_app(tx, ana, "flowers")
        assert app_trials.trials(tx) == []


def test_what_was_found_on_the_engine_is_combined_into_an_ensemble(engine: EngineUnderTest) -> None:
    """The members' sets all hold a result.json, each its own: that must not keep them apart."""
    ana = declared(engine)
    feed(engine.lake, ana, "flowers", rows(60))
    controller = engine.controller()
    engine.turn_until(controller, lambda: controller.connected)
    with engine.store.write() as tx:
        app = apps.find(tx, ana.project_id, "flowers")
        found = [Candidate(family) for family in ("logistic_regression", "bayes_point", "svm")]
        started = [submit_job(tx, ana, learn_spec(tx, app, c, Resources(1.0, 1024), 60.0)) for c in found]
    ended = engine.finish(controller, *started, seconds=240)
    assert [one.state for one in ended] == [JobState.FINISHED] * 3, [one.reason for one in ended]
    with engine.store.write() as tx:
        for candidate, job in zip(found, ended, strict=True):
            told = job.result or {}
            decision = {"reasons": {"acquisition": 0.0}}
            app_trials.add(tx, [app.id], job.id, candidate.name, candidate.to_json(), decision, 60)
            app_trials.end(tx, job.id, told["quality"], 1.0, job.output_set, error=told["error"])
        together = combine_if_due(tx, app)
    assert together is not None
    assert together.spec.resources.memory_mb == 1280, "as much as a trial of so little data, and three models"
    made = engine.finish(controller, together, seconds=240)[0]
    assert made.state is JobState.FINISHED, made.reason
    assert made.result is not None
    assert len(made.result["members"]) == 3
    assert made.result["luck"] is not None
    told = made.result
    with engine.store.write() as tx:
        app_trials.end(tx, made.id, told["quality"], 1.0, made.output_set, luck=told["luck"])
    _score_by_costs_and_back(engine, ana, ended[0], told)


def _score_by_costs_and_back(
    engine: EngineUnderTest, ana: Caller, first: Job, mixture: Mapping[str, Any]
) -> None:
    """What was tried is scored by the answers that were kept, and what was combined is combined anew."""
    costs = "cost(yes as no: 10)"
    kept = kept_scores(engine.lake, ana, "flowers", costs)
    assert len(kept) == 4, "the ensemble keeps its answers too"
    with engine.store.write() as tx:
        change_app(tx, ana, "flowers", costs, kept)
        found = app_trials.trials(tx)
    *scored, again = found
    assert [trial.job_id in kept for trial in scored] == [True] * 4
    assert all(trial.error is not None and trial.baseline is not None for trial in scored)
    assert all(-1.0 < (trial.quality or 0.0) <= 0.0 for trial in scored)
    assert all(trial.luck is None for trial in scored)
    assert (again.candidate["family"], again.ended) == ("ensemble", False)
    with engine.store.write() as tx:
        change_app(tx, ana, "flowers", "accuracy", kept_scores(engine.lake, ana, "flowers", "accuracy"))
        back = {trial.job_id: trial for trial in app_trials.trials(tx)}
    assert len(back) == 4, "what was combined for the costs and did not end is forgotten"
    assert back[first.id].quality == pytest.approx((first.result or {})["quality"])
    assert back[first.id].error == pytest.approx((first.result or {})["error"])
    (combined,) = (trial for trial in back.values() if trial.candidate["family"] == "ensemble")
    assert combined.luck == pytest.approx(mixture["luck"]), "an ensemble knows its luck in its own metric"


def test_the_best_model_goes_on_serving_by_costs_where_no_answers_were_kept(engine: EngineUnderTest) -> None:
    ana = declared(engine)
    feed(engine.lake, ana, "flowers", rows(60))
    with engine.store.write() as tx:
        app = apps.find(tx, ana.project_id, "flowers")
        for candidate, quality in ((Candidate("logistic_regression"), 0.9), (Candidate("svm"), None)):
            job = submit_job(tx, ana, learn_spec(tx, app, candidate, Resources(1.0, 1024), 60.0))
            decision = {"reasons": {"acquisition": 0.0}}
            app_trials.add(tx, [app.id], job.id, candidate.name, candidate.to_json(), decision, 60)
            app_trials.end(tx, job.id, quality, 1.0, None if quality is None else "flowers-model:1")
            scores = {} if quality is None else {"accuracy": quality}
            jobs.change(tx, [(jobs.rows(tx, [job.id])[job.id], {"result": {"scores": scores}})])
        change_app(tx, ana, "flowers", "cost(yes as no: 10)")
        found = {trial.model_set: trial.quality for trial in app_trials.trials(tx)}
    assert found == {"flowers-model:1": pytest.approx(-1.0), None: None}, "it is known to cost no more"


def test_a_program_may_become_wider_while_its_app_lives(engine: EngineUnderTest) -> None:
    ana = declared(engine)
    feed(engine.lake, ana, "flowers", rows(5))
    with engine.store.write() as tx:
        change_program(
            tx, ana, "flowers", "input: {size: optional number, town: category}\noutput: [no, yes, maybe]"
        )
    more = [({"size": None, "town": "Bern"}, "maybe"), *rows(5)]
    [remark] = (fed_now := feed(engine.lake, ana, "flowers", more)).notes
    assert fed_now == Fed(1, 5, 6, (), (remark,))
    assert remark.startswith("only one example of maybe")
