"""Models that answered one after the other: back to the one before, and forward again."""

from __future__ import annotations

import pytest

from easel.errors import Conflict
from easel.flow.apps.best import serving
from easel.flow.apps.declare import declare_app
from easel.flow.apps.takeover import roll_back, roll_forward, takeovers
from easel.ids import JobId
from easel.records.identity import Caller
from easel.store import app_trials, apps
from easel.testing.engine import EngineUnderTest

PROGRAM = "input: {size: number}\noutput: [no, yes]"


def tried(engine: EngineUnderTest, ana: Caller, *scores: float) -> None:
    """One trial after the other, each with the model that its number names."""
    for number, score in enumerate(scores, start=1):
        job = JobId(f"job_{number}")
        with engine.store.write() as tx:
            app = apps.find(tx, ana.project_id, "flowers")
            decision = {"reasons": {"acquisition": 0.1}}
            app_trials.add(tx, [app.id], job, f"c{number}", {"family": "svm"}, decision, 100)
        with engine.store.write() as tx:
            app_trials.end(tx, job, score, 1.0, f"flowers-model:{number}")


def answers(engine: EngineUnderTest, ana: Caller) -> str | None:
    with engine.store.read() as tx:
        found = serving(tx, apps.find(tx, ana.project_id, "flowers"))
        return None if found is None else found.model_set


@pytest.fixture
def ana(engine: EngineUnderTest) -> Caller:
    caller = engine.caller()
    with engine.store.write() as tx:
        declare_app(tx, caller, "flowers", PROGRAM)
    return caller


def test_back_to_the_model_before_and_forward_again(engine: EngineUnderTest, ana: Caller) -> None:
    tried(engine, ana, 0.6, 0.5, 0.7, 0.8)
    with engine.store.read() as tx:
        app = apps.find(tx, ana.project_id, "flowers")
        found = [each.model_set for each in takeovers(app_trials.trials(tx, app.id))]
    assert found == ["flowers-model:1", "flowers-model:3", "flowers-model:4"]
    for expected in ("flowers-model:3", "flowers-model:1"):
        with engine.store.write() as tx:
            roll_back(tx, ana, "flowers")
        assert answers(engine, ana) == expected
    with engine.store.write() as tx, pytest.raises(Conflict, match="there is none before it"):
        roll_back(tx, ana, "flowers")
    for expected in ("flowers-model:3", "flowers-model:4"):
        with engine.store.write() as tx:
            made = roll_forward(tx, ana, "flowers")
        assert answers(engine, ana) == expected
    assert made.pinned is None
    with engine.store.write() as tx, pytest.raises(Conflict, match="is not rolled back"):
        roll_forward(tx, ana, "flowers")


def test_a_better_model_does_not_take_over_from_one_that_was_rolled_back_to(
    engine: EngineUnderTest, ana: Caller
) -> None:
    tried(engine, ana, 0.6, 0.8)
    with engine.store.write() as tx:
        roll_back(tx, ana, "flowers")
    with engine.store.write() as tx:
        app = apps.find(tx, ana.project_id, "flowers")
        app_trials.add(
            tx, [app.id], JobId("job_9"), "c9", {"family": "svm"}, {"reasons": {"acquisition": 0}}, 100
        )
        app_trials.end(tx, JobId("job_9"), 0.9, 1.0, "flowers-model:9")
    assert answers(engine, ana) == "flowers-model:1"


def test_without_a_model_there_is_nothing_to_roll_back(engine: EngineUnderTest, ana: Caller) -> None:
    with engine.store.write() as tx, pytest.raises(Conflict, match="nothing to roll back"):
        roll_back(tx, ana, "flowers")
