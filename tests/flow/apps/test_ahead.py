"""What is imported before a trial is walled in."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from easel.flow.apps.trial import ahead
from easel.match.candidate import Candidate
from easel.match.registry import all_families

INSTALLED = [name for name, family in all_families().items() if family.installed]


@pytest.mark.parametrize("family", INSTALLED)
def test_what_a_family_needs_is_there_to_be_imported(family: str) -> None:
    candidate = Candidate(family, (), 0.1, 0.5)
    names = ahead({"candidate": candidate.to_json()})
    assert names
    assert [name for name in names if find_spec(name) is None] == []
