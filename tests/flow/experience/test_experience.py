"""The experience that comes with the package, and the command that gathers it."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from easel.declare.friendly import read_program
from easel.flow.experience.file import PACKAGED, packaged_experience, read_experience, write_experience
from easel.flow.experience.laws import laws_of, with_experienced_costs
from easel.flow.experience.measure import prepare, run_one, wanted
from easel.flow.experience.sources import sources
from easel.match.candidate import Candidate
from easel.match.propose import estimate_cost, propose_candidates
from easel.match.summary import DataSummary
from easel.schedule.experience import DataProperties, Experience, KnownSet, Outcome, merged


def known(name: str, rows: float = 100.0, seconds: float = 1.0, score: float = 0.9) -> KnownSet:
    outcomes = {"svm(C=3)": Outcome(score, seconds), "bayes_point": Outcome(np.nan, 0.1)}
    return KnownSet(name, name, "table classification", "made up", DataProperties(rows, 4, 2), outcomes)


def test_the_package_brings_a_small_file_with_tables_in_it() -> None:
    assert PACKAGED.stat().st_size < 2_000_000
    assert len(packaged_experience().of("table classification").sets) >= 15


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "experience.json"
    write_experience(Experience((known("a"), known("b"))), path)
    again = read_experience(path)
    assert [one.name for one in again.sets] == ["a", "b"]
    assert again.sets[0].outcomes["svm(C=3)"] == Outcome(0.9, 1.0)
    assert np.isnan(again.sets[0].outcomes["bayes_point"].score)


def test_two_files_become_one_and_what_both_ran_is_kept_as_it_was() -> None:
    both = merged(Experience((known("a"),)), Experience((known("a", score=0.1), known("b"))))
    assert [one.name for one in both.sets] == ["a", "b"]
    assert both.sets[0].outcomes["svm(C=3)"].score == 0.9


def test_a_missing_or_broken_file_is_no_experience_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken = tmp_path / "broken.json"
    with caplog.at_level(logging.WARNING, "easel.experience"):
        assert not read_experience(tmp_path / "none.json").sets
        for damage in (b"{", b"\xff\xfe\x00", b"[]", b'{"sets": 5}'):
            broken.write_bytes(damage)
            assert not read_experience(broken).sets
        assert not read_experience(tmp_path).sets, "a folder is no file"
    assert len(caplog.records) == 6


def test_entries_of_another_version_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "older.json"
    newer = {**known("b").to_json(), "properties": {"rows": 1.0, "columns": 2.0, "smell": 3.0}}
    path.write_text(json.dumps({"version": 0, "sets": [{"name": "a"}, newer]}), encoding="utf-8")
    assert [one.name for one in read_experience(path).sets] == ["b"]


def test_a_set_is_learned_with_the_code_of_a_trial_and_what_is_done_is_not_done_again() -> None:
    iris = next(one for one in sources() if one.name == "sklearn/iris")
    prepared = prepare(iris)
    assert prepared is not None
    assert prepared.template == "table classification"
    assert prepared.properties.classes == 3.0
    bayes = next(one for one in prepared.candidates if one.name == "bayes_point")
    outcome = run_one(iris, bayes, 30.0)
    assert outcome is not None
    assert outcome.score > 0.9
    assert bayes not in wanted(prepared, {"bayes_point": outcome}, 60.0)
    assert bayes not in wanted(prepared, {}, 60.0, skip=("bayes_point",))


def test_seconds_grow_with_the_data_as_experience_says() -> None:
    sets = tuple(known(f"s{rows}", rows, seconds=rows / 100.0) for rows in (100.0, 400.0, 1600.0, 6400.0))
    laws = laws_of(Experience(sets), classes=True)
    candidates = (Candidate("svm", (("C", 3),), cost_s=7.0), Candidate("convnet", cost_s=7.0))
    small, unknown = with_experienced_costs(candidates, DataSummary(200, 4, classes=2), laws)
    large, _ = with_experienced_costs(candidates, DataSummary(3200, 4, classes=2), laws)
    assert small.cost_s == pytest.approx(2.0, rel=0.3)
    assert large.cost_s == pytest.approx(32.0, rel=0.3)
    assert unknown.cost_s == 7.0


def test_beyond_what_was_seen_seconds_grow_as_the_family_says() -> None:
    """Small tables say nothing of pictures: support vectors of 20,000 of them were thought to take two seconds."""
    sets = tuple(known(f"s{rows}", rows, seconds=rows / 1000.0) for rows in (100.0, 400.0, 1600.0, 3200.0))
    laws = laws_of(Experience(sets), classes=True)
    bare = Candidate("svm", (("C", 3),))
    edge, far = DataSummary(3_200, 4, classes=2), DataSummary(20_000, 784, side=28, classes=10)
    at_edge, beyond = (
        with_experienced_costs((replace(bare, cost_s=estimate_cost(bare, size)),), size, laws)[0].cost_s
        for size in (edge, far)
    )
    assert at_edge == pytest.approx(3.2, rel=0.3)
    growth = estimate_cost(bare, far) / estimate_cost(bare, replace(edge, side=28))
    assert beyond == pytest.approx(at_edge * growth, rel=0.01)


def test_no_candidate_of_many_pictures_is_thought_to_be_done_at_once() -> None:
    program = read_program("input: image 28 x 28\noutput: [a, b, c, d, e, f, g, h, i, j]")
    size = DataSummary(60_000, 784, side=28, classes=10)
    plain = propose_candidates(program, size)
    for one, expected in zip(plain, with_experienced_costs(plain, size), strict=True):
        assert expected.cost_s > 0.1 * one.cost_s, one.name
