"""The table of folders in docs/architecture.md says what each of them imports."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "easel"
EVERYWHERE = {"errors", "ids", "clock", "version", "traces", "metrics", "deprecation"}
ROWS = re.findall(
    r"^\| (`\w+/`.*?) \|.*\| ([^|]+) \|$", (ROOT / "docs" / "architecture.md").read_text(), re.MULTILINE
)
FOLDERS = {path.name for path in SOURCE.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
KNOWS = {
    folder: set(re.findall(r"\w+", knows)) & FOLDERS
    for folders, knows in ROWS
    for folder in re.findall(r"`(\w+)/`", folders)
}


def imported(folder: str) -> set[str]:
    """Returns the other folders from which the modules of one import."""
    found = set()
    for path in (SOURCE / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("easel."):
                found.add(str(node.module).split(".")[1])
    return found - {folder} - EVERYWHERE


def beneath(folder: str) -> set[str]:
    """Returns what a folder knows, and all that those know."""
    found: set[str] = set()
    left = [folder]
    while left:
        for one in KNOWS[left.pop()] - found:
            found.add(one)
            left.append(one)
    return found


def test_every_folder_is_in_the_table() -> None:
    assert FOLDERS - KNOWS.keys() == set()


@pytest.mark.parametrize("folder", sorted(KNOWS.keys() - {"flow", "testing"}))
def test_a_folder_imports_what_the_table_says_that_it_knows(folder: str) -> None:
    """`flow` may import all above it in the table, `testing` what it tests."""
    together = {"wire", "sdk", "cli"}  # one row of the table
    known = beneath(folder) | (together if folder in together else set())
    above = KNOWS.keys() if "flow" in known else set()
    assert imported(folder) - known - set(above) == set()
