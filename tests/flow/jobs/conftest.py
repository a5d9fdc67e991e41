"""An engine with a real worker."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from easel.testing.engine import Engine, running

_numbers = itertools.count()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """On SQLite and on PostgreSQL."""
    url = None
    if request.param == "postgresql":
        server = request.getfixturevalue("postgres_server")
        url = server.create(f"engine{next(_numbers)}", template=request.getfixturevalue("postgres_template"))
    with running(tmp_path / "home", url) as made:
        yield made
