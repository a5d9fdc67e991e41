"""Streams of events that broke off: whoever comes back is told what happened meanwhile, all of it and once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from easel.store import identity
from easel.store.engine import NewEvent, Store
from easel.testing.clock import FakeClock
from easel.testing.databases import new_sqlite
from easel.testing.server import ServerProcess, running

MEANWHILE = 450
"""More than one reading of the history returns."""


@pytest.fixture
def database(tmp_path: Path) -> str:
    return new_sqlite(tmp_path / "easel.sqlite")


@pytest.fixture
def server(tmp_path: Path, database: str) -> Iterator[ServerProcess]:
    with running(tmp_path, database) as started:
        started.client().projects.create("astro")
        yield started


def heard(server: ServerProcess, last: int, count: int) -> list[int]:
    """The numbers of the first events that a browser hears which saw event `last` before its connection broke."""
    headers = {"Authorization": f"Bearer {server.admin_token}", "Last-Event-ID": str(last)}
    address = f"{server.address}/api/v1/projects/astro/events/stream"
    found: list[int] = []
    with httpx.stream("GET", address, headers=headers, timeout=100) as answer:
        for line in answer.iter_lines():
            if line.startswith("id: "):
                found.append(int(line.removeprefix("id: ")))
                if len(found) == count:
                    break
    return found


def test_a_browser_without_a_connection_for_an_hour_is_told_all_of_it_once_and_in_order(
    server: ServerProcess, database: str
) -> None:
    (seen,) = heard(server, 0, 1)
    other = Store(database, clock=FakeClock(datetime.now(UTC) + timedelta(hours=1)))
    with other.write() as tx:
        project = identity.project_named(tx, "astro")
        assert project is not None
        tx.emit_all([NewEvent("test.told", f"x{i}", project.id, None, {}) for i in range(MEANWHILE)])
    other.close()
    numbers = heard(server, seen, MEANWHILE)
    assert numbers == sorted(set(numbers))
    assert numbers[0] > seen
    # It breaks again half way: what came through is not told again, nor is anything left out.
    half = MEANWHILE // 2
    assert heard(server, numbers[half], MEANWHILE - half - 1) == numbers[half + 1 :]
