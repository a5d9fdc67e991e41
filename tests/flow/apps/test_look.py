"""The best trial, chosen by the database or among all that were read: the same one."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import HealthCheck, given, settings

from easel.flow.apps.best import best_among
from easel.flow.apps.ready import STILL_VALID
from easel.ids import AppId, JobId
from easel.store import app_trials
from easel.store.engine import Store

APP, OTHER = AppId("app_1"), AppId("app_2")
ended = st.tuples(
    st.integers(0, 100), st.sampled_from([None, -1.0, 0.5, 0.5, 0.9]), st.booleans(), st.booleans()
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(ended, max_size=8), st.integers(0, 100))
def test_the_list_of_apps_and_the_one_app_agree_on_the_best_model(
    sqlite_store: Store, drawn: list[tuple[int, float | None, bool, bool]], on: int
) -> None:
    with sqlite_store.read() as tx:  # what a reader writes is not kept: each example begins anew
        for number, (examples, quality, has_model, mine) in enumerate(drawn):
            job = JobId(f"job_{number}")
            decision = {"reasons": {"acquisition": 0.0}}
            app_trials.add(tx, [APP if mine else OTHER], job, "svm", {"model": "svm"}, decision, examples)
            app_trials.end(tx, job, quality, 1.0, f"model:{number}" if has_model else None)
        known = app_trials.trials_of(tx, [APP, OTHER])
        assert known[APP] == app_trials.trials(tx, APP)
        for app in (APP, OTHER):
            assert best_among(known[app], on) == app_trials.best(tx, app, STILL_VALID * on)
