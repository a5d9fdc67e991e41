"""The best trial, chosen by the database or among all that were read: the same one."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from easel.flow.apps.best import best_among, luck_of, preferred, shown_best
from easel.flow.apps.dossier import Dossier, Result
from easel.flow.apps.look import why_chosen
from easel.flow.apps.ready import STILL_VALID
from easel.ids import AppId, JobId
from easel.match.candidate import Candidate
from easel.records.app import App, AppTrial
from easel.records.tenant import Terms
from easel.store import app_trials
from easel.store.engine import Store

APP, OTHER = AppId("app_1"), AppId("app_2")
ended = st.tuples(
    st.integers(0, 100),
    st.sampled_from([None, -1.0, 0.5, 0.5, 0.9]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, None, 0.0, 0.5]),
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(ended, max_size=8), st.integers(0, 100))
def test_the_list_of_apps_and_the_one_app_agree_on_the_best_model(
    sqlite_store: Store, drawn: list[tuple[int, float | None, bool, bool, float | None]], on: int
) -> None:
    with sqlite_store.read() as tx:  # what a reader writes is not kept: each example begins anew
        for number, (examples, quality, has_model, mine, luck) in enumerate(drawn):
            job = JobId(f"job_{number}")
            decision = {"reasons": {"acquisition": 0.0}}
            app_trials.add(tx, [APP if mine else OTHER], job, "svm", {"model": "svm"}, decision, examples)
            app_trials.end(tx, job, quality, 1.0, f"model:{number}" if has_model else None, luck=luck)
        known = app_trials.trials_of(tx, [APP, OTHER])
        assert known[APP] == app_trials.trials(tx, APP)
        for app in (APP, OTHER):
            least = STILL_VALID * on
            asked = preferred(app_trials.best(tx, app, least), app_trials.mixture(tx, app, least))
            assert best_among(known[app], on) == asked


def test_an_ensemble_is_served_where_a_single_model_leads_by_no_more_than_luck(sqlite_store: Store) -> None:
    with sqlite_store.read() as tx:

        def ended(name: str, quality: float, luck: float | None = None) -> AppTrial | None:
            decision = {"reasons": {"acquisition": 0.0}}
            app_trials.add(tx, [APP], JobId(name), name, {"family": name}, decision, 100)
            app_trials.end(tx, JobId(name), quality, 1.0, f"{name}:1", luck=luck)
            return best_among(app_trials.trials(tx, APP), 100)

        ended("logistic_regression", 0.760)
        found = ended("ensemble", 0.751, luck=0.015)
        assert found is not None
        assert (found.model_set, luck_of(found, 0.015)) == ("ensemble:1", 0.0)
        clear = ended("lightgbm", 0.790)
        assert clear is not None
        assert (clear.model_set, luck_of(clear, 0.015)) == ("lightgbm:1", 0.015)


def test_reasons_name_the_score_that_the_page_shows(sqlite_store: Store) -> None:
    """Chosen by the same examples, the best scores 0.975; the page says 0.945, and so do the reasons."""
    with sqlite_store.read() as tx:

        def started(name: str) -> str:
            weighed = {"rule": "gain", "mean": 0.98, "deviation": 0.01, "acquisition": 0.0, "cost": 20.0}
            reasons = {**weighed, "best_so_far": 0.975}
            candidate = Candidate(name).to_json()
            app_trials.add(tx, [APP], JobId(name), name, candidate, {"reasons": reasons}, 100)
            return why_chosen(app_trials.trials(tx, APP), len(app_trials.trials(tx, APP)) - 1, "accuracy")

        def ended(name: str, quality: float, luck: float | None = None) -> None:
            app_trials.end(tx, JobId(name), quality, 1.0, f"{name}:1", luck=luck)

        assert "a first result" in started("svm")
        ended("svm", 0.975)
        assert "(97.5 %)" in started("ensemble")
        ended("ensemble", 0.93, luck=0.03)
        assert "(94.5 %)" in started("lightgbm")
        trials = app_trials.trials(tx, APP)
        assert shown_best(trials, 100) == pytest.approx(0.945)
        results = [
            Result(one.job_id, one.name, one.quality, 0.0, 100, 0, one.model_set, luck=one.luck)
            for one in app_trials.ended(tx, APP)
        ]
        dossier = Dossier(cast(App, None), Terms(), "accuracy", (Candidate("svm"),), 100, tuple(results))
        assert dossier.best == 0.975
        assert dossier.shown == pytest.approx(0.945)
        mixed = replace(results[-1], quality=0.96)
        assert replace(dossier, results=(results[0], mixed)).shown == 0.96
        assert replace(dossier, results=(results[0],)).shown == 0.975
