"""The name that `easel run` gives a job without one."""

from __future__ import annotations

import pytest

from easel.cli.run import _name


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["python", "wordcount.py", "input", "./output/"], "python wordcount.py input output"),
        (["python", "code/train.py", "--data=/data/a.csv"], "python train.py a.csv"),
        (["sh", "-c", "cat a/b > c"], "sh -c cat ab > c"),
        (["/"], "job"),
    ],
)
def test_a_name_holds_the_last_parts_of_paths_and_no_dots_of_folders(argv: list[str], name: str) -> None:
    assert _name({"argv": argv}) == name
