"""What was tried is combined: chosen greedily, scored honestly, stored with its members."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from sqlalchemy import delete

from easel.errors import InvalidInput
from easel.flow.apps.dossier import Dossier, Result
from easel.flow.apps.ensemble import due, is_due, may_be_due, say_why_not
from easel.flow.apps.trial import combine, learn
from easel.ids import AppId, JobId
from easel.match.candidate import Candidate
from easel.match.ensemble import EnsembleBody, choose, mix
from easel.match.examples import Single
from easel.match.kinds import Task
from easel.match.model import load_model, present
from easel.match.stored import StoredPair, write_lines
from easel.records.app import App, AppTrial
from easel.records.tenant import Terms
from easel.store import app_trials
from easel.store.engine import Store, Tx
from easel.store.schema.apps import app_trials as rows

PROGRAM = "{input: {[a :: Number, b :: Number], []}, output: {[Category[no, yes]], []}}"


@dataclass(frozen=True)
class Place:
    arguments: dict[str, Any]
    input: Path
    output: Path
    checkpoint: Path = field(default=Path("unused"))

    def asked_to_give_way(self) -> bool:
        return False


def trial_of(
    family: str, *, of: int = 0, quality: float | None = 0.8, ended: bool = True, metric: str = "accuracy"
) -> AppTrial:
    settings = {"of": of} if family == "ensemble" else {}
    candidate = {"family": family, "settings": settings, "cost_s": 1.0, "promise": 0.5}
    at = datetime(2026, 11, 16, tzinfo=UTC)
    return AppTrial(
        AppId("app_1"),
        JobId(f"job_{family}"),
        candidate,
        {"combined_for": metric},
        at,
        100,
        ended,
        quality,
        1.0,
        "m:1",
    )


def test_an_ensemble_is_due_with_three_models_and_again_with_twice_as_many() -> None:
    tried = [trial_of("svm", quality=0.7), trial_of("linear", quality=0.9), trial_of("lightgbm")]
    assert [one.quality for one in due(tried, 100, "accuracy")] == [0.9, 0.8, 0.7]
    assert due(tried[:2], 100, "accuracy") == []
    first = trial_of("ensemble", of=3)
    assert due([*tried, first], 100, "accuracy") == []
    assert len(due([*tried, *tried, first], 100, "accuracy")) == 6
    assert due([*tried, trial_of("ensemble", of=3, quality=None, ended=False)], 100, "accuracy") == []
    assert due(tried, 1000, "accuracy") == [], "what was learned from a tenth of the examples is not combined"


def test_what_was_combined_for_another_metric_is_combined_anew() -> None:
    tried = [trial_of("svm"), trial_of("linear"), trial_of("lightgbm")]
    assert due([*tried, trial_of("ensemble", of=3, metric="roc_auc")], 100, "accuracy") == tried
    assert due([*tried, trial_of("ensemble", of=3)], 100, "accuracy") == []
    found = [
        Result(JobId("job"), name, 0.8, 0.0, 100, 0, "m:1", luck=luck)
        for name, luck in (("svm", None), ("linear", None), ("lightgbm", None), ("ensemble(of=3)", 0.01))
    ]
    assert not may_be_due(found)
    assert may_be_due([*found[:3], replace(found[3], luck=None)])


def test_why_an_app_gets_no_ensemble_is_said_once_and_warned_of_only_where_an_operator_must_know(
    caplog: pytest.LogCaptureFixture,
) -> None:
    say_why_not.cache_clear()
    with caplog.at_level(logging.INFO, "easel.learning"):
        for app in ("app_1", "app_2", "app_1"):
            say_why_not(AppId(app), "project astro has 8 of 8 jobs running", True)
            say_why_not(AppId(app), "there is no file set m:1", False)
    told = [(one.levelname, one.getMessage().split(": ")[0]) for one in caplog.records]
    assert told == [
        (level, f"no ensemble for app {app}") for app in ("app_1", "app_2") for level in ("INFO", "WARNING")
    ]


def test_an_app_is_due_where_its_results_or_the_ensembles_it_has_had_say_so(store: Store) -> None:
    """Without its luck an ensemble may be one for another metric: then its own record tells, and no other is read."""
    app = AppId("app_1")
    names = ("svm", "linear", "lightgbm", "ensemble(of=3)")
    found = [Result(JobId(f"job_{name}"), name, 0.8, 0.0, 100, 0, "m:1") for name in names]
    one = Dossier(cast(App, SimpleNamespace(id=app)), Terms(), "accuracy", (), 100, tuple(found))
    new = Result(JobId("job_new"), "knn", 0.8, 0.0, 100, 0, "m:2")

    def due_after(tx: Tx, metric: str, examples: int, *, ended: bool = True) -> bool:
        tx.execute(delete(rows))
        made = Candidate("ensemble", (("of", 3),))
        kept = {"combined_for": metric, "reasons": {"acquisition": 0.0}}
        app_trials.add(tx, [app], JobId("job_made"), made.name, made.to_json(), kept, examples)
        if ended:
            app_trials.end(tx, JobId("job_made"), 0.8, 1.0, "m:3")
        return is_due(tx, one, new)

    with store.write() as tx:
        assert is_due(tx, replace(one, results=tuple(found[:3])), new), "none was ever made"
        assert not is_due(tx, replace(one, results=tuple(found[:1])), new), "two models are too few"
        assert not due_after(tx, "accuracy", 100), "four models are not twice as many as three"
        assert due_after(tx, "roc_auc", 100), "it was made for another metric"
        assert due_after(tx, "accuracy", 50), "it was made of half of today's examples"
        assert not due_after(tx, "roc_auc", 100, ended=False), "it is being made"


def test_members_that_err_differently_are_chosen_together_and_useless_ones_are_not() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=1000)
    one, two = (np.clip(truth + rng.normal(0, 0.7, 1000), 0.01, 0.99) for _ in range(2))
    members = {name: np.stack([1 - p, p], 1) for name, p in (("one", one), ("two", two))}
    members["noise"] = np.full((1000, 2), 0.5)
    weights = choose(Task.CLASSIFY, "negative_log_loss", truth, members)
    assert weights["one"] + weights["two"] > 0.8
    assert sum(weights.values()) == pytest.approx(1.0)
    mixture = mix(Task.CLASSIFY, "negative_log_loss", truth, members)
    assert mixture.predicted.shape == (1000, 2)


def test_models_on_disk_become_one_model_that_names_its_members(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(80, 2))
    pairs = [
        StoredPair(f"{k:032x}", k % 5, {"a": float(a), "b": float(b)}, "yes" if a + b > 0 else "no")
        for k, (a, b) in enumerate(x)
    ]
    examples = tmp_path / "examples"
    examples.mkdir()
    (examples / "shard.jsonl").write_bytes(b"".join(write_lines(pairs)))
    together = tmp_path / "together"
    for candidate in (Candidate("logistic_regression"), Candidate("svm"), Candidate("bayes_point")):
        wanted = {"program": PROGRAM, "candidate": candidate.to_json(), "seed": 0, "budget_s": 60.0}
        told = learn(Place(wanted, examples, together))
        assert set(told["scores"]) >= {"accuracy", "roc_auc", "negative_log_loss"}
        assert told["baseline"] < told["quality"]
    (together / "shard.jsonl").write_bytes((examples / "shard.jsonl").read_bytes())
    ensemble = Candidate("ensemble", (("of", 3),))
    wanted = {
        "program": PROGRAM,
        "candidate": ensemble.to_json(),
        "metric": "accuracy",
        "seed": 0,
        "answer_s": 5.0,
    }
    told = combine(Place(wanted, together, tmp_path / "out"))
    assert told["quality"] > 0.85
    assert len(told["members"]) == 3
    (about,) = (json.loads(path.read_text()) for path in (tmp_path / "out").rglob("report.json"))
    assert (about["classes"], sum(map(sum, about["confusion"]))) == (["no", "yes"], 80)
    (losses,) = (json.loads(path.read_text()) for path in (tmp_path / "out").rglob("losses.json"))
    assert set(losses) == {pair.digest for pair in pairs}
    stored = list((tmp_path / "out").rglob("model.json"))
    assert len(stored) == 1
    model = load_model(stored[0].parent)
    assert isinstance(model.body, EnsembleBody)
    answers = present(model, model.predict([Single((2.0, 2.0)), Single((-2.0, -2.0))]))
    assert [one["label"] for one in answers] == ["yes", "no"]
    with pytest.raises(InvalidInput, match="no two models"):
        combine(Place(wanted, examples, tmp_path / "none"))
