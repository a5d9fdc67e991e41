"""Fixtures that several folders need: real databases."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from easel.store.engine import Store
from easel.store.migrate import migrate
from easel.testing import postgres

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.Postgres]:
    if postgres.find_binaries() is None:
        pytest.skip("PostgreSQL is not installed: scripts/test installs it where it may")
    with postgres.running() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database, on each engine in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/easel.sqlite"
    server: postgres.Postgres = request.getfixturevalue("postgres_server")
    return server.create(f"t{next(_numbers)}")


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """A migrated, empty store, on each engine in turn."""
    found = Store(database_url)
    migrate(found, backup=lambda _revision: None)
    yield found
    found.close()
