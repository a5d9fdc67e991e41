"""The dashboard's typed client is made from the API as it is."""

from __future__ import annotations

from pathlib import Path

from easel.testing.openapi import description

WEB = Path(__file__).parents[2] / "web"


def test_the_typed_client_was_made_from_todays_api() -> None:
    assert (WEB / "openapi.json").read_text() == description(), "the API has changed: run scripts/reference"


def test_the_lock_file_names_no_registry() -> None:
    assert '"resolved"' not in (WEB / "package-lock.json").read_text()
