"""Blocks of documents that are marked as sessions (```shell-session) are run, and must print what they show.

Lines that begin with `$ ` are commands, continued by a backslash; what follows is their standard output. `…` stands for
anything inside a line, and a line of `…` alone for any lines. All sessions of a page run in one folder, a copy of the
tutorial's, one after another.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from easel.testing.server import ServerProcess, running

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"```shell-session\n(.*?)```", re.DOTALL)
PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if BLOCK.search(page.read_text())]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running(tmp_path_factory.mktemp("sessions")) as made:
        yield made


def steps(page: Path) -> list[tuple[str, str]]:
    """Returns the commands of a page's sessions, each with what it shows."""
    found = []
    for block in BLOCK.findall(page.read_text()):
        for step in re.split(r"(?m)^\$ ", block)[1:]:
            command = re.match(r"(?:.*\\\n)*.*\n?", step)
            assert command is not None
            found.append((command[0].rstrip("\n"), step[command.end() :]))
    return found


def shows(expected: str, printed: str) -> bool:
    """Whether what was printed is what the page shows."""
    lines = [
        r"(?:.*\n)*?" if line.strip() == "…" else " ".join(map(_loosely, line.split())) + r"\n"
        for line in expected.splitlines()
        if line.strip()
    ]
    plain = "".join(" ".join(line.split()) + "\n" for line in printed.splitlines() if line.strip())
    return re.fullmatch("".join(lines), plain) is not None


def _loosely(word: str) -> str:
    return ".*".join(map(re.escape, word.split("…")))


def test_what_is_shown_is_compared() -> None:
    assert PAGES
    assert shows("job_… finished\n", "job_01  finished  \n")
    assert shows("a\n…\nd\n", "a\nb\nc\nd\n")
    assert shows("", "\n")
    assert not shows("a\n", "a\nb\n")
    assert not shows("18 words\n", "19 words\n")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_session_prints_what_its_page_shows(page: Path, server: ServerProcess, tmp_path: Path) -> None:
    folder = tmp_path / "tutorial"
    shutil.copytree(ROOT / "docs" / "tutorial", folder)
    project = re.sub("[^a-z]", "", page.stem)
    server.client().projects.create(project)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "easel").write_text(f'#!/bin/sh\nexec {sys.executable} -m easel.cli.main "$@"\n')
    (programs / "easel").chmod(0o755)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("EASEL_")},
        "EASEL_SERVER": server.address,
        "EASEL_TOKEN": server.admin_token,
        "EASEL_PROJECT": project,
        "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "COLUMNS": "120",
    }
    for command, expected in steps(page):
        done = _run(command, folder, environment, tmp_path)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        assert shows(expected, done.stdout), f"$ {command}\n{done.stdout}"
        folder = Path((tmp_path / "at").read_text().strip())


def _run(
    command: str, folder: Path, environment: dict[str, str], notes: Path
) -> subprocess.CompletedProcess[str]:
    """Runs one command and notes the folder that it ended in, for `cd`."""
    script = f"{command}\ncode=$?\npwd > {notes / 'at'}\nexit $code\n"
    return subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
