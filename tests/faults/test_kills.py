"""The short form of `python -m benchmarks.kills`: some kills under load, and everything is accounted for."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.kills.rounds import run_round


# Connections to servers that were killed are closed by the collector, whenever it comes.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_nothing_that_was_acknowledged_is_lost_and_bills_are_those_of_the_journals(tmp_path: Path) -> None:
    tally = run_round("sqlite", 8.0, seed=7, points=2, keep=tmp_path / "kills")
    assert tally.faults == {}
    assert sum(tally.kills.values()) > 0
    assert tally.counts["jobs"] > 0
    assert round(tally.billed_s, 3) == round(tally.journal_s, 3)
