"""Columns marked as group or as time: groups stay together, the future stays out."""

from __future__ import annotations

import time

import numpy as np
import pytest

from easel.declare.friendly import read_program
from easel.declare.loosen import loosened
from easel.declare.parse import parse_program
from easel.declare.program import Program, ProgramError
from easel.errors import InvalidInput
from easel.match.candidate import Candidate
from easel.match.examples import Example, Single
from easel.match.roles import marked_value, only_value, own_folds
from easel.match.split import rounds
from easel.match.suspects import rank_suspects
from easel.match.train import Conditions, train

GROUPED = read_program("input: {size: number, patient: category as group}\noutput: [no, yes]")
TIMED = read_program("input: {size: number, at: number as time}\noutput: number")
FOREST = Candidate("random_forest", (("trees", 30),))


def grouped(groups: list[str]) -> list[Example]:
    """Every patient has a size and an answer of its own, which have nothing to do with each other."""
    rng = np.random.default_rng(0)
    size = {group: float(rng.normal()) for group in sorted(set(groups))}
    answer = {group: str(rng.choice(["no", "yes"])) for group in sorted(set(groups))}
    return [Example(Single((size[g] + 0.001 * float(rng.normal()), g)), Single((answer[g],))) for g in groups]


def timed(times: list[float]) -> list[Example]:
    return [Example(Single((float(k % 7), at)), Single((float(k % 7),))) for k, at in enumerate(times)]


def conditions() -> Conditions:
    return Conditions(seed=0, budget_s=60.0, clock=time.monotonic)


def test_examples_of_one_group_share_a_fold_and_the_folds_are_even() -> None:
    groups = [f"p{k % 12}" for k in range(120)]
    folds = own_folds(GROUPED, grouped(groups), [k % 5 for k in range(120)])
    homes = {group: {f for f, g in zip(folds, groups, strict=True) if g == group} for group in groups}
    assert all(len(home) == 1 for home in homes.values())
    assert max(np.bincount(folds)) - min(np.bincount(folds)) <= 10


def test_what_was_learned_by_heart_of_a_patient_scores_nothing_once_groups_stay_together() -> None:
    examples = grouped([f"p{k % 20}" for k in range(200)])
    spread = [k // 20 % 5 for k in range(200)]
    plain = read_program("input: {size: number, patient: category}\noutput: [no, yes]")
    by_heart = train(FOREST, plain, examples, spread, conditions()).measurement.quality
    honest = train(FOREST, GROUPED, examples, own_folds(GROUPED, examples, spread), conditions())
    assert by_heart > 0.95
    assert honest.measurement.quality < 0.85
    assert honest.model.source([examples[0].input]).shape == (1, 1), "the group itself is no input"


def test_the_future_is_kept_out_and_ties_stay_together() -> None:
    times = [float(k // 3) for k in range(60)]
    order = np.random.default_rng(0).permutation(60)
    shuffled = [times[k] for k in order]
    folds = own_folds(TIMED, timed(shuffled), [0] * 60)
    plan = rounds(folds, ordered=True)
    assert len(plan) == 4
    for one in plan:
        latest = max(shuffled[i] for i in one.train)
        assert latest < min(shuffled[i] for i in one.validate)


def test_a_trial_with_a_time_validates_on_the_later_part() -> None:
    examples = timed([float(k) for k in range(60)])
    found = train(
        Candidate("linear", (("C", 1.0),)),
        TIMED,
        examples,
        own_folds(TIMED, examples, [0] * 60),
        conditions(),
    )
    assert sorted(found.learned.validated.tolist()) == list(range(12, 60))


def test_many_ties_leave_two_spans_and_missing_times_are_oldest() -> None:
    folds = own_folds(TIMED, timed([1.0] * 50 + [2.0] * 3), [0] * 53)
    assert sorted(set(folds)) == [0, 1] or len(set(folds)) == 2
    missing = [*timed([5.0, 6.0, 7.0]), Example(Single((1.0, None)), Single((1.0,)))]
    assert own_folds(TIMED, missing, [0] * 4)[3] == 0


@pytest.mark.parametrize(
    ("program", "examples", "words"),
    [
        (
            GROUPED,
            grouped(["p1"] * 10),
            r"all 10 examples are of one group \(patient = p1\): feed another group",
        ),
        (TIMED, timed([3.0] * 10), "all 10 examples have the same at: there is no future to keep out"),
    ],
)
def test_one_group_or_one_moment_is_refused_in_words(
    program: Program, examples: list[Example], words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        own_folds(program, examples, [0] * len(examples))


def test_the_one_value_of_all_examples_is_remembered_until_another_comes() -> None:
    assert marked_value(GROUPED, grouped(["p1"])[0]) == "patient = p1"
    assert only_value(None, {"patient = p1"}) == "patient = p1"
    assert only_value("patient = p1", {"patient = p1"}) == "patient = p1"
    assert only_value("patient = p1", {"patient = p2"}) == ""
    assert only_value("", {"patient = p1"}) == ""


def test_wrong_labels_are_looked_for_with_what_came_later_too() -> None:
    examples = timed([float(k) for k in range(40)])
    assert len(rank_suspects(TIMED, examples, conditions(), Candidate("linear", (("C", 1.0),)))) == 40


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{input: {[a :: Category as group], []}, output: {[Number], []}}", "the group is the only input"),
        (
            "{input: {[a :: Text as time, b :: Number], []}, output: {[Number], []}}",
            "a Date or a Number can be the time",
        ),
        ("{input: {[b :: Number], []}, output: {[Number as time], []}}", "belongs to the input"),
        (
            "{input: {[b :: Number, c :: Number as time], [next]}, output: {[Number], []}}",
            "column of a table",
        ),
        (
            "{input: {[b :: Number, c :: Number as time, d :: Category as group], []}, output: {[Number], []}}",
            "mark one column",
        ),
        (
            "{input: {[b :: Number, c :: Number as place], []}, output: {[Number], []}}",
            'expected "group" or "time"',
        ),
    ],
)
def test_roles_that_make_no_sense_are_refused(text: str, words: str) -> None:
    with pytest.raises(ProgramError, match=words):
        parse_program(text)


def test_a_role_is_written_and_read_back_and_cannot_be_changed() -> None:
    text = "{input: {[size :: Number, patient :: Category? as group], []}, output: {[Category[no, yes]], []}}"
    assert str(parse_program(text)) == text
    with pytest.raises(ProgramError, match="cannot become"):
        loosened(parse_program(text), parse_program(text.replace(" as group", "")))
    with pytest.raises(ProgramError, match="neither group nor time"):
        read_program("input: {a: image 4 x 4 as group, b: number}\noutput: number")
