"""Few examples are validated by several deals of the folds; each counts once, in scores, errors and ensembles."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from tests.match import worlds

from easel.match.candidate import Candidate
from easel.match.canonical import near_key
from easel.match.ensemble import Answered, mix, side_by_side
from easel.match.kinds import Task
from easel.match.repeats import repeated_rounds
from easel.match.report import describe
from easel.match.split import FEW, TURNS, assign_folds, rounds, rows_by_example
from easel.match.summary import strata
from easel.match.train import Conditions, train

CONDITIONS = Conditions(seed=1, budget_s=600.0, clock=time.monotonic)
GROUPS = "{input: {[a :: Number, who :: Category as group], []}, output: {[Category[no, yes]], []}}"


def test_every_turn_validates_every_example_once_with_classes_evenly_spread() -> None:
    program, examples = worlds.table()
    folds = assign_folds(strata(program, examples))
    again = repeated_rounds(program, examples, folds, seed=0)
    assert {one.turn for one in again} == set(range(1, TURNS))
    labels = np.array(strata(program, examples))
    for turn in range(1, TURNS):
        mine = [one for one in again if one.turn == turn]
        assert sorted(np.concatenate([one.validate for one in mine]).tolist()) == list(range(len(examples)))
        for one in mine:
            assert not set(one.train.tolist()) & set(one.validate.tolist())
            assert np.mean(labels[one.validate] == "yes") == pytest.approx(np.mean(labels == "yes"), abs=0.1)
    first = {tuple(one.validate.tolist()) for one in rounds(folds)}
    assert not first & {tuple(one.validate.tolist()) for one in again}


def test_groups_and_near_duplicates_share_a_fold_in_every_turn() -> None:
    pairs = [({"a": float(k), "who": f"p{k // 6}"}, ["no", "yes"][k % 2]) for k in range(60)]
    program, examples = worlds.world(GROUPS, pairs)
    for one in repeated_rounds(program, examples, [k // 6 % 5 for k in range(60)], seed=0):
        asked, learned = ({pairs[i][0]["who"] for i in rows} for rows in (one.validate, one.train))
        assert not asked & learned
    text = "{input: {[Tensor[6]], []}, output: {[Category], []}}"
    rows = np.repeat(np.random.default_rng(0).normal(size=(40, 6)), 2, axis=0)
    program, examples = worlds.world(text, [(row, "ab"[k % 4 // 2]) for k, row in enumerate(rows)])
    keys = [near_key(one) for one in examples]
    for one in repeated_rounds(program, examples, [k // 2 % 5 for k in range(80)], seed=0):
        assert not {keys[i] for i in one.validate} & {keys[i] for i in one.train}


def test_examples_that_are_nearly_all_alike_are_not_dealt_again() -> None:
    program, examples = worlds.trees()  # a fold of another deal would hold all that are like each other
    assert len({near_key(one) for one in examples}) == 4
    assert repeated_rounds(program, examples, [k % 5 for k in range(48)], seed=0) == ()


def test_many_examples_and_those_in_order_of_time_are_not_dealt_again() -> None:
    program, examples = worlds.line(FEW)
    assert repeated_rounds(program, examples, [k % 5 for k in range(FEW)], seed=0) == ()
    text = "{input: {[a :: Number, at :: Date as time], []}, output: {[Number], []}}"
    pairs = [({"a": float(k), "at": f"2026-01-{k + 1:02}"}, float(k)) for k in range(30)]
    program, examples = worlds.world(text, pairs)
    assert repeated_rounds(program, examples, [k // 6 for k in range(30)], seed=0) == ()


def test_a_trial_counts_every_example_once_however_often_it_was_answered() -> None:
    program, examples = worlds.table()
    folds = assign_folds(strata(program, examples))
    found = train(Candidate("logistic_regression"), program, examples, folds, CONDITIONS)
    assert found.measurement.validated_on == len(examples)
    assert found.measurement.rounds == 5 * TURNS
    assert len(found.learned.validated) == TURNS * len(examples)
    assert np.isfinite(found.losses).all()
    # the error of 80 examples, not of three times as many
    p = found.measurement.quality
    assert found.measurement.error > 0.75 * (p * (1 - p) / len(examples)) ** 0.5
    learned = found.learned
    by_example = rows_by_example(learned.validated)
    told = describe(found.model.target, learned.truth, learned.predicted, by_example)
    assert np.sum(told["confusion"]) == len(examples)
    slice_of_it = train(
        Candidate("logistic_regression"), program, examples, folds, replace(CONDITIONS, until=0.5)
    )
    assert slice_of_it.measurement.rounds == 5


def test_another_deal_of_the_folds_moves_the_score_less_than_one_deal_does() -> None:
    """The mean of three turns lies nearer to the mean of many than single turns do, on average."""
    program, examples = worlds.table(60)
    found = [
        train(
            Candidate("logistic_regression"),
            program,
            examples,
            assign_folds(strata(program, examples)),
            replace(CONDITIONS, seed=seed),
        )
        for seed in range(6)
    ]
    truth, answers = found[0].learned.truth, [one.learned.predicted.argmax(1) for one in found]
    size = len(examples)
    turns = [
        float(np.mean(one[k * size : (k + 1) * size] == truth[k * size : (k + 1) * size]))
        for one in answers
        for k in range(1, TURNS)
    ]
    assert len(set(turns)) > 1, "deals differ"
    assert np.std([one.measurement.quality for one in found]) < np.std(turns)


def test_members_with_and_without_turns_are_combined_on_the_same_examples() -> None:
    rng = np.random.default_rng(0)
    once = Answered(np.array([3, 1, 2, 0]), rng.random((4, 2)))
    often = Answered(np.array([0, 1, 2, 2, 0, 1]), rng.random((6, 2)))
    shared = side_by_side({"once": once, "often": often})
    assert shared.rows.tolist() == [0, 0, 1, 1, 2, 2]
    np.testing.assert_array_equal(shared.predicted["once"], once.predicted[[3, 3, 1, 1, 2, 2]])
    np.testing.assert_array_equal(shared.predicted["often"], often.predicted[[0, 4, 1, 5, 2, 3]])
    assert shared.by_example.tolist() == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(ValueError, match="more often"):
        rows_by_example(np.array([0, 0, 1]))


def test_weights_are_chosen_without_any_answer_to_the_examples_that_score_them() -> None:
    truth = np.repeat(np.arange(40) % 2, 2)
    right = np.stack([1.0 - truth, truth.astype(float)], 1)
    rows = np.repeat(np.arange(40), 2)
    shared = side_by_side({"right": Answered(rows, right), "wrong": Answered(rows, 1 - right)})
    mixture = mix(Task.CLASSIFY, "accuracy", truth, shared.predicted, shared.by_example)
    assert mixture.predicted.shape == (80, 2)
    np.testing.assert_array_equal(mixture.predicted[::2], mixture.predicted[1::2])
