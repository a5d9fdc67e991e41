"""The summary of the quality benchmark tells every figure that the models are held to."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.quality import Line, add, read, within
from benchmarks.quality_summary import summary


def line(name: str, system: str, test: float, **more: object) -> Line:
    base = {
        "set": name,
        "system": system,
        "seed": 0,
        "budget_s": 20.0,
        "metric": "accuracy",
        "learned_on": 700,
        "classes": 2,
        "shown": 0.80,
        "shown_error": 0.02,
        "luck": 0.01,
        "test": test,
        "test_error": 0.02,
        "log_loss": 0.4,
        "calibration_error": 0.03,
        "covered": None,
        "model": "svm",
        "cpu_s": 20.0,
        "tried": 5,
        "memory_mb": 600,
        "code": "abc",
        "validated_on": 700,
        "tested_on": 300,
        "within_s": 2.0 if system == "easel" else 16.0,
    }
    return Line(**{**base, **more})  # type: ignore[arg-type]


def test_every_figure_is_told_with_its_bar(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    for name, ours, theirs in (("one", 0.80, 0.78), ("two", 0.75, 0.78), ("three", 0.9, 0.9)):
        add(path, line(name, "easel", ours))
        add(path, line(name, "autogluon", theirs))
        add(path, line(name, "flaml", theirs, within_s=None))
    told = summary(read(path))
    for words in (
        "against autogluon on 3: 1 won, 1 lost, 1 equal, wins minus losses +0 (bar: 0 or more)",
        "against flaml on 3: 1 won, 1 lost, 1 equal, wins minus losses +0 (bar: 20 or more of 40)",
        "more than 2 points behind on 1 (bar: 0): two (seed 0)",
        "easel: within 1 % of its final score after 2.0 s (median of 3)",
        "time to within 1 %: median 12 % of AutoGluon's over 3 (bar: 25 %)",
        "easel: shown minus test -1.67 points",
        "the one for the test's own number 67 % of 3 (bar: 85 to 95 %)",
        "calibration error with 350 to 3,500 examples: mean 0.030, median 0.030 over 3 (bar: 0.05)",
        "memory: at most 600 MB (bar: 4,096)",
    ):
        assert words in told


def test_a_set_that_was_measured_again_counts_once_and_old_files_get_the_new_columns(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(
        "set,system,seed,budget_s,test,shown,code\nold,easel,0,20,0.5,0.6,aaa\n", encoding="utf-8"
    )
    add(path, line("old", "easel", 0.8))
    rows = read(path)
    assert [(r["code"], r["tested_on"]) for r in rows] == [("aaa", ""), ("abc", "300")]
    assert "shown minus test +0.00 points (± 0.00) over 1" in summary(rows)


@pytest.mark.parametrize(
    ("path", "since"),
    [
        ([[1.0, 0.5], [2.0, 0.795], [5.0, 0.8]], 2.0),
        ([[1.0, 0.81], [2.0, 0.7], [5.0, 0.8]], 5.0),
        ([[1.0, 0.5]], 20.0),
    ],
)
def test_the_time_to_within_one_percent_is_when_it_stays_there(path: list[list[float]], since: float) -> None:
    assert within(path, 0.8, 20.0) == since
    assert within([], 0.8, 20.0) is None
