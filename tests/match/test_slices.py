"""A trial in slices takes the path of one that was never stopped."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.match import worlds
from tests.match.test_train import candidate_of
from tests.match.worlds import World

from easel.errors import InvalidInput
from easel.match import loop
from easel.match.candidate import Candidate
from easel.match.estimator_body import EstimatorBody
from easel.match.families import linear
from easel.match.kinds import GAVE_WAY, OUT_OF_TIME, SLICE_ENDED
from easel.match.slices import SliceState, fit_slice
from easel.match.split import Round, assign_folds, part_of
from easel.match.summary import strata
from easel.match.train import Conditions, train


def begun(world: World, family: str, folder: Path | None, epochs: int | None = 6) -> SliceState:
    program, examples = world
    folds = [fold % 2 for fold in assign_folds(strata(program, examples))]
    conditions = Conditions(1, 600.0, time.monotonic, checkpoints=folder, epochs=epochs)
    return SliceState(candidate_of(world, family), program, examples, folds, conditions)


def test_a_network_in_three_slices_ends_as_one_that_was_never_stopped(tmp_path: Path) -> None:
    world = worlds.waves()
    state = begun(world, "fcn", tmp_path / "sliced")
    state, first = fit_slice(state, 1 / 3)
    assert (first.measurement.stopped, state.over) == (SLICE_ENDED, False)
    state, _ = fit_slice(state, 2 / 3)
    state, last = fit_slice(state, 1.0)
    assert state.over
    assert last.learned.resumed > 0
    whole = begun(world, "fcn", tmp_path / "whole")
    once = train(whole.candidate, whole.program, whole.examples, whole.folds, whole.conditions)
    np.testing.assert_allclose(last.learned.predicted, once.learned.predicted, atol=1e-5)
    assert len(first.learned.curves[0]) == 2


def test_a_slice_never_stops_short_of_its_rung_and_one_that_is_there_is_not_over(tmp_path: Path) -> None:
    world = worlds.waves()
    state, first = fit_slice(begun(world, "fcn", tmp_path, 5), 1 / 4)
    assert state.reached >= 1 / 4
    again = train(
        state.candidate, state.program, state.examples, state.folds, replace(state.conditions, until=1 / 4)
    )
    assert (again.measurement.stopped, again.learned.reached) == (SLICE_ENDED, state.reached)
    np.testing.assert_allclose(again.learned.predicted, first.learned.predicted, atol=1e-6)


def test_the_model_of_a_slice_answers(tmp_path: Path) -> None:
    world = worlds.waves()
    _, trained = fit_slice(begun(world, "fcn", tmp_path), 0.5)
    trained.model.save(tmp_path / "model")
    assert (tmp_path / "model").is_dir()
    assert 0.0 <= trained.measurement.quality <= 1.0


def test_other_families_learn_from_a_share_that_grows(tmp_path: Path) -> None:
    state = begun(worlds.texts(240), "text_linear", None, None)
    whole = train(state.candidate, state.program, state.examples, state.folds, state.conditions)
    state, part = fit_slice(state, 0.5)
    assert part.measurement.stopped == SLICE_ENDED
    assert part.measurement.validated_on == whole.measurement.validated_on
    assert not np.allclose(part.learned.predicted, whole.learned.predicted)
    state, last = fit_slice(state, 1.0)
    assert state.over
    assert last.measurement.quality == pytest.approx(whole.measurement.quality)


def test_the_model_of_a_share_is_that_which_was_validated_and_not_fitted_twice() -> None:
    state = begun(worlds.table(1_200), "svm", None, None)
    _, part = fit_slice(state, 0.25)
    held = [i for i, fold in enumerate(state.folds) if fold == 0]
    answers = part.model.predict([state.examples[i].input for i in held])
    np.testing.assert_allclose(answers, part.learned.predicted, atol=1e-9)


def test_a_trial_that_is_late_serves_the_model_it_has(tmp_path: Path) -> None:
    world = worlds.table(1_200)
    state = begun(world, "svm", None, None)
    ticks = iter(range(0, 10**6, 100))
    late = replace(state.conditions, budget_s=50.0, clock=lambda: float(next(ticks)))
    trained = train(state.candidate, state.program, state.examples, state.folds, late)
    assert trained.measurement.stopped == OUT_OF_TIME
    held = [state.examples[i].input for i, fold in enumerate(state.folds) if fold == 0]
    np.testing.assert_allclose(trained.model.predict(held), trained.learned.predicted, atol=1e-9)


def test_a_slice_goes_forward_and_not_beyond_the_end() -> None:
    state = begun(worlds.texts(240), "text_linear", None, None)
    with pytest.raises(InvalidInput, match="not above 1"):
        fit_slice(state, 1.5)
    state, _ = fit_slice(state, 1.0)
    with pytest.raises(InvalidInput, match="must lie above 1"):
        fit_slice(state, 1.0)


@pytest.mark.parametrize("family", ["boosted_trees", "extra_trees", "random_forest"])
def test_trees_grown_in_slices_are_those_of_one_that_was_never_stopped(family: str, tmp_path: Path) -> None:
    world = worlds.table(240)
    state = begun(world, family, tmp_path / "sliced", None)
    state, part = fit_slice(state, 0.25)
    assert part.measurement.stopped == SLICE_ENDED
    assert state.reached == 0.25
    state, last = fit_slice(state, 1.0)
    assert state.over
    assert last.learned.resumed > 0
    whole = begun(world, family, None, None)
    once = train(whole.candidate, whole.program, whole.examples, whole.folds, whole.conditions)
    np.testing.assert_allclose(last.learned.predicted, once.learned.predicted, atol=1e-9)
    inputs = [example.input for example in whole.examples[:20]]
    np.testing.assert_allclose(last.model.predict(inputs), once.model.predict(inputs), atol=1e-9)


def test_whoever_goes_on_with_trees_that_draw_lots_has_as_many_in_the_end(tmp_path: Path) -> None:
    state = begun(worlds.table(240), "lightgbm", tmp_path, None)
    state, part = fit_slice(state, 0.25)
    state, last = fit_slice(state, 1.0)
    assert state.over
    assert last.learned.resumed > 0
    grown = [one.model.body for one in (part, last)]
    assert all(isinstance(body, EstimatorBody) for body in grown)
    assert [
        body.estimator.booster_.current_iteration() for body in grown if isinstance(body, EstimatorBody)
    ] == [
        30,
        120,
    ]


def test_a_forest_that_predicts_several_numbers_goes_on_too(tmp_path: Path) -> None:
    state = begun(worlds.line(80, outputs=2), "extra_trees", tmp_path, None)
    state, part = fit_slice(state, 0.25)
    assert (part.measurement.stopped, state.reached) == (SLICE_ENDED, 0.25)
    state, last = fit_slice(state, 1.0)
    assert state.over
    assert last.learned.resumed > 0


@pytest.mark.parametrize("family", ["fcn", "boosted_trees", "lightgbm", "extra_trees"])
def test_who_is_asked_to_give_way_stops_at_the_next_checkpoint_and_goes_on_from_there(
    family: str, tmp_path: Path
) -> None:
    world = worlds.waves() if family == "fcn" else worlds.table(240)
    epochs = 6 if family == "fcn" else None
    state = begun(world, family, tmp_path / "given", epochs)
    asked = replace(state.conditions, give_way=lambda: True)
    after, part = fit_slice(replace(state, conditions=asked), 1.0)
    assert part.measurement.stopped == GAVE_WAY
    assert 0.0 < after.reached < 1.0
    assert not after.over
    after, last = fit_slice(replace(after, conditions=state.conditions), 1.0)
    assert after.over
    assert last.learned.resumed > 0
    whole = begun(world, family, tmp_path / "whole", epochs)
    once = train(whole.candidate, whole.program, whole.examples, whole.folds, whole.conditions)
    if family != "lightgbm":
        np.testing.assert_allclose(last.learned.predicted, once.learned.predicted, atol=1e-5)


def test_catboost_goes_on_with_the_rate_of_the_whole_and_gives_way_after_any_tree(tmp_path: Path) -> None:
    pytest.importorskip("catboost")
    program, examples = world = worlds.table(240)
    state = replace(
        begun(world, "catboost", tmp_path, None), candidate=Candidate("catboost", (("trees", 40),))
    )
    asked = replace(state, conditions=replace(state.conditions, give_way=lambda: True))
    after, part = fit_slice(asked, 1.0)
    assert (part.measurement.stopped, after.reached) == (GAVE_WAY, 1 / 40)
    after, _ = fit_slice(replace(after, conditions=state.conditions), 0.5)
    after, last = fit_slice(after, 1.0)
    assert after.over
    assert last.learned.resumed > 0
    once = train(state.candidate, program, examples, state.folds, replace(state.conditions, checkpoints=None))
    bodies = [one.model.body for one in (last, once)]
    assert all(isinstance(body, EstimatorBody) and body.estimator.grown == 40 for body in bodies)
    rates = [body.estimator.model.get_all_params()["learning_rate"] for body in bodies]  # type: ignore[attr-defined]
    assert rates[0] == pytest.approx(rates[1], rel=1e-6)
    assert last.measurement.quality == pytest.approx(once.measurement.quality, abs=0.1)


def test_a_logistic_regression_that_is_asked_to_give_way_answers_and_may_be_had_whole_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(linear, "AT_ONCE", 2)
    program, examples = world = worlds.table(240)
    state = begun(world, "logistic_regression", None, None)
    plain = state.candidate
    asked = replace(state.conditions, give_way=lambda: True)
    whole = train(plain, program, examples, state.folds, state.conditions)
    after, part = fit_slice(replace(state, conditions=asked), 0.5)
    assert part.measurement.stopped == GAVE_WAY
    assert 0.0 < after.reached <= 0.5
    assert part.measurement.quality > 0.5
    after, last = fit_slice(replace(after, conditions=state.conditions), 1.0)
    assert after.over
    assert last.measurement.quality == pytest.approx(whole.measurement.quality, abs=1e-3)


def test_what_cannot_be_stopped_gives_way_before_it_learns_from_all_examples_again() -> None:
    """Support vectors: what was validated serves, and the trial is over."""
    state = begun(worlds.table(240), "svm", None, None)
    fits: list[int] = []
    asked = replace(state.conditions, give_way=lambda: bool(fits), progress=lambda share: fits.append(1))
    after, part = fit_slice(replace(state, conditions=asked), 1.0)
    assert (part.measurement.stopped, after.over) == (GAVE_WAY, True)
    assert len(part.model.predict([example.input for example in state.examples[:3]])) == 3


@pytest.mark.parametrize("family", ["fcn", "lightgbm"])
def test_what_cannot_be_read_of_a_checkpoint_is_learned_anew(family: str, tmp_path: Path) -> None:
    """Half-written, empty, or of something else."""
    world = worlds.waves() if family == "fcn" else worlds.table(240)
    state = begun(world, family, tmp_path, 4 if family == "fcn" else None)
    _, first = fit_slice(state, 0.5)
    for path in tmp_path.rglob("*.*"):
        if path.is_file() and path.name != "grown.json":
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    _, again = fit_slice(state, 0.5)
    assert again.learned.resumed == 0
    np.testing.assert_allclose(again.learned.predicted, first.learned.predicted, atol=1e-5)


@pytest.mark.parametrize("family", ["fcn", "lightgbm"])
def test_a_full_disk_costs_the_checkpoint_and_not_the_slice(family: str, tmp_path: Path) -> None:
    world = worlds.waves() if family == "fcn" else worlds.table(240)
    (tmp_path / "no-folder").write_bytes(b"")
    state = begun(world, family, tmp_path / "no-folder", 4 if family == "fcn" else None)
    after, part = fit_slice(state, 0.5)
    assert after.reached == 0.5
    assert part.measurement.quality > 0.0


def test_a_long_epoch_is_stopped_in_its_middle_and_gone_on_with_from_that_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "PART_STEPS", 1)
    world = worlds.waves()
    whole = begun(world, "fcn", tmp_path / "whole", 3)
    once = train(whole.candidate, whole.program, whole.examples, whole.folds, whole.conditions)
    state = begun(world, "fcn", tmp_path / "given", 3)
    asked = replace(state, conditions=replace(state.conditions, give_way=lambda: True))
    after, part = fit_slice(asked, 1.0)
    assert part.measurement.stopped == GAVE_WAY
    assert 0.0 < after.reached < 1 / 3, "not even one epoch"
    after, last = fit_slice(replace(after, conditions=state.conditions), 1.0)
    assert after.over
    np.testing.assert_allclose(last.learned.predicted, once.learned.predicted, atol=1e-5)


def test_a_share_of_the_examples_has_two_of_every_class_and_grows_by_adding() -> None:
    labels = np.array([0] * 690 + [1] * 10)
    whole = Round(np.arange(700), np.arange(0))
    parts = [set(part_of(whole, share, 3, labels).train.tolist()) for share in (0.06, 0.25, 0.5)]
    assert parts[0] < parts[1] < parts[2]
    assert [len(part) for part in parts] == [42, 175, 350]
    rare = [sum(labels[i] for i in part) for part in parts]
    assert rare[0] >= 2
    assert 2 <= rare[1] <= 4
    assert 4 <= rare[2] <= 6


def test_a_slice_of_a_table_with_a_class_of_one_percent_learns() -> None:
    rng = np.random.default_rng(0)
    sick = [k % 100 == 0 for k in range(400)]
    pairs = [
        ([float(rng.normal() + 4 * ill), float(rng.normal())], "sick" if ill else "well") for ill in sick
    ]
    world = worlds.world("{input: {[Tensor[2]], []}, output: {[Category], []}}", pairs)
    for family in ("logistic_regression", "lightgbm"):
        _, first = fit_slice(begun(world, family, None), 0.08)
        assert first.measurement.scores["roc_auc"] > 0.5


def test_a_round_that_has_examples_of_one_class_alone_answers_with_it() -> None:
    pairs = [([float(k % 7)], "a" if k < 26 else "b") for k in range(30)]
    program, examples = worlds.world("{input: {[Tensor[1]], []}, output: {[Category], []}}", pairs)
    folds = [0 if k >= 26 else 1 + k % 4 for k in range(30)]
    for family in ("logistic_regression", "lightgbm", "boosted_trees"):
        found = train(Candidate(family), program, examples, folds, Conditions(0, 60.0, time.monotonic))
        assert 0.0 <= found.measurement.quality <= 1.0


def test_a_forest_that_is_done_leaves_no_checkpoint_and_one_that_is_not_all_of_them(tmp_path: Path) -> None:
    """Storing a forest takes as long as growing it."""
    whole = begun(worlds.table(240), "extra_trees", tmp_path / "whole", None)
    train(whole.candidate, whole.program, whole.examples, whole.folds, whole.conditions)
    assert not list(tmp_path.rglob("grown.json"))
    _, part = fit_slice(begun(worlds.table(240), "extra_trees", tmp_path / "part", None), 0.25)
    assert part.measurement.stopped == SLICE_ENDED
    assert len(list(tmp_path.rglob("grown.json"))) == part.measurement.rounds
