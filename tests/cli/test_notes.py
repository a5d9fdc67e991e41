"""What `easel notes` takes a reference for."""

from __future__ import annotations

import pytest

from easel.cli.notes import kind_of


@pytest.mark.parametrize(
    ("ref", "kind"),
    [
        ("job_01m7p9mpn530adxntt1ev1a5r9", "job"),
        ("1a5r9x", "job"),
        ("digits-model:6", "fileset"),
        ("/stars/a:2", "file"),
        ("/stars/a.csv", "file"),
    ],
)
def test_a_reference_says_itself_what_it_names(ref: str, kind: str) -> None:
    assert kind_of(ref) == kind
