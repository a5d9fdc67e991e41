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
from easel.match.estimator_body import EstimatorBody
from easel.match.kinds import GAVE_WAY, SLICE_ENDED
from easel.match.slices import SliceState, fit_slice
from easel.match.split import assign_folds
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


def test_a_slice_goes_forward_and_not_beyond_the_end() -> None:
    state = begun(worlds.texts(240), "text_linear", None, None)
    with pytest.raises(InvalidInput, match="not above 1"):
        fit_slice(state, 1.5)
    state, _ = fit_slice(state, 1.0)
    with pytest.raises(InvalidInput, match="must lie above 1"):
        fit_slice(state, 1.0)


def test_trees_grown_in_slices_are_those_of_one_that_was_never_stopped(tmp_path: Path) -> None:
    family = "boosted_trees"
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


@pytest.mark.parametrize("family", ["fcn", "boosted_trees", "lightgbm"])
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
