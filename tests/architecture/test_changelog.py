"""The changelog: versions with their dates, entries by kind, and the script that folds fragments in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scripts.fold_changelog import KINDS, entries, fold

from easel.version import __version__

ROOT = Path(__file__).parents[2]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
FRAGMENTS = sorted((ROOT / "CHANGELOG.d").glob("*.md"))


def test_every_version_has_a_date_and_only_known_kinds() -> None:
    headings = re.findall(r"(?m)^## (.*)$", CHANGELOG)
    assert headings
    assert [one for one in headings if not re.fullmatch(r"\d+\.\d+\.\d+ — \d{4}-\d\d-\d\d", one)] == []
    assert set(re.findall(r"(?m)^### (.*)$", CHANGELOG)) <= set(KINDS)


def test_the_version_is_the_newest_one_or_has_fragments() -> None:
    newest = re.findall(r"(?m)^## (\S+)", CHANGELOG)[0]
    assert newest == __version__ or FRAGMENTS


@pytest.mark.parametrize("path", FRAGMENTS, ids=lambda path: path.name)
def test_every_fragment_can_be_folded_in(path: Path) -> None:
    assert entries(path.read_text())


def test_fragments_are_grouped_by_kind_under_a_new_version_and_added_to_one_that_is_there() -> None:
    before = "# Changelog\n\n## 0.1.0 — 2026-01-01\n\n### Added\n- a\n"
    once = fold(before, ["### Fixed\n- c\n  more of c\n", "### Added\n- b\n"], "0.2.0", "2026-02-02")
    assert once == (
        "# Changelog\n\n## 0.2.0 — 2026-02-02\n\n### Added\n- b\n\n### Fixed\n- c\n  more of c\n\n"
        "## 0.1.0 — 2026-01-01\n\n### Added\n- a\n"
    )
    twice = fold(once, ["### Added\n- d\n"], "0.2.0", "2026-02-03")
    assert "## 0.2.0 — 2026-02-03\n\n### Added\n- b\n- d\n\n### Fixed\n- c" in twice
    assert twice.count("## 0.2.0") == 1


@pytest.mark.parametrize("text", ["### New\n- a\n", "- a\n", "### Added\nno entry\n"])
def test_a_fragment_that_is_not_as_it_must_be_says_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match=r"write|begin"):
        fold("# Changelog\n", [text], "0.2.0", "2026-02-02")
    with pytest.raises(ValueError, match="nothing to fold"):
        fold("# Changelog\n", [], "0.2.0", "2026-02-02")
