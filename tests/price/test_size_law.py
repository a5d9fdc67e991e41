"""How seconds grow with data."""

from __future__ import annotations

import pytest

from easel.price.size_law import DataSize, SizedRun, size_laws


def run(name: str, rows: float, seconds: float) -> SizedRun:
    return SizedRun(name, name.partition("(")[0], DataSize(rows, 10, 2), seconds)


def test_a_line_through_many_sizes_is_found() -> None:
    laws = size_laws([run("svm(C=1)", n, 1e-6 * n**2) for n in (200, 500, 1000, 2000, 5000, 9000)])
    assert laws.guess("svm(C=1)", "svm", DataSize(3000, 10, 2)) == pytest.approx(9.0, rel=0.3)


def test_a_new_setting_follows_its_family_and_an_unknown_family_has_no_guess() -> None:
    laws = size_laws([run("svm(C=1)", n, n / 100) for n in (100, 400, 1600)])
    followed = laws.guess("svm(C=9)", "svm", DataSize(400, 10, 2))
    assert followed == pytest.approx(4.0, rel=0.3)
    assert laws.guess("tree", "tree", DataSize(400, 10, 2)) is None


def test_runs_of_no_time_and_sizes_of_nothing_are_ordinary_input() -> None:
    laws = size_laws([run("svm", 100, 0.0), run("svm", 100, float("nan")), run("svm", 0, 1.0)])
    guess = laws.guess("svm", "svm", DataSize(0, 0, 0))
    assert guess is not None
    assert guess > 0.0
