"""Which packages a job gets that takes the folder here along."""

from __future__ import annotations

import pytest

from easel.errors import InvalidInput
from easel.sdk.code import SentCode, requirements_of
from easel.wire.job import CodeOrigin, Environment


def sent(requirements: str | None) -> SentCode:
    return SentCode("code-mnist:1", CodeOrigin(), requirements=requirements)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (Environment(), "uv.lock"),
        (Environment(python="3.12"), "uv.lock"),
        (Environment(python="3.12.1"), "uv.lock"),
        (Environment(python="/opt/team/bin/python"), None),
        (Environment(image="python:3.12"), None),
        (Environment(requirements="none"), None),
        (Environment(requirements="none", python="3.12"), None),
        (Environment(requirements="gpu.txt", python="3.12"), "gpu.txt"),
    ],
)
def test_the_folders_packages_count_unless_others_are_named(asked: Environment, found: str | None) -> None:
    assert requirements_of(asked, sent("uv.lock")) == found


def test_without_a_folder_only_what_is_named_counts() -> None:
    assert requirements_of(Environment(python="3.12"), None) is None
    assert requirements_of(Environment(requirements="gpu.txt"), None) == "gpu.txt"


def test_a_version_of_python_beside_a_file_that_names_one_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"environment\.yml of the folder names its own Python"):
        requirements_of(Environment(python="3.12"), sent("environment.yml"))
