"""Sending the folder here: which packages its job gets, and what changes meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from easel.errors import InvalidInput
from easel.lake.code_folder import CodeFolder, scan_code
from easel.sdk.client import Client
from easel.sdk.code import SentCode, requirements_of, send
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


def test_a_file_that_changes_while_the_folder_is_sent_is_named_and_nothing_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text("print('one')\n")

    def scanned(*asked: Any, **more: Any) -> CodeFolder:
        found = scan_code(*asked, **more)
        (folder / "train.py").write_text("print('two')\n")
        return found

    monkeypatch.setattr("easel.sdk.code.scan_code", scanned)
    nobody = Client("http://127.0.0.1:9", "token", "astro", attempts=1)
    with pytest.raises(InvalidInput, match=r"train\.py changed while it was sent: try again"):
        send(nobody, folder, remember=False)
