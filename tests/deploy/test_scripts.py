"""Every script says what it does when it is asked to, and does nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(
    path.name
    for path in (ROOT / "scripts").iterdir()
    if path.is_file() and path.suffix == "" and path.name != "setup"
)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_that_is_asked_for_help_gives_it_and_writes_nothing(name: str) -> None:
    before = sorted(path.name for path in ROOT.iterdir())
    said = subprocess.run(
        [ROOT / "scripts" / name, "--help"], check=True, capture_output=True, text=True, timeout=60
    )
    assert f"scripts/{name}" in said.stdout
    assert not said.stderr
    assert sorted(path.name for path in ROOT.iterdir()) == before
