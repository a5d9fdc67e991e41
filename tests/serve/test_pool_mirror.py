"""The pool that pages look at goes by the same rules as the controller's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.tenancy.test_keeper import app
from tests.tenancy.test_places import pool_of

from easel.records.standing import Obstacle, Standing
from easel.serve.pool_mirror import looking
from easel.serve.settings import Settings
from easel.serve.state import AppState
from easel.store import devices
from easel.testing.engine import EngineUnderTest, running


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EngineUnderTest]:
    with running(tmp_path / "home") as made:
        yield made


def server(engine: EngineUnderTest, **settings: Any) -> AppState:
    """As much of a server as its pages need to look at the pool."""
    made = Settings(home=engine.home, **settings)
    return cast(AppState, SimpleNamespace(settings=made, lake=engine.lake, store=engine.store))


def seen(engine: EngineUnderTest, state: AppState) -> list[Obstacle]:
    with engine.store.read() as tx, looking(state, tx) as pool:
        return list(pool.obstacles.values())


def test_pages_say_done_where_the_admins_threshold_says_so(engine: EngineUnderTest) -> None:
    app(engine, "mine", 0)
    pool = pool_of(engine)
    (job,) = pool.turn()
    pool.end(job, 0.7)
    with engine.store.write() as tx:
        devices.away(tx, "core")
    assert pool.turn() == []
    assert pool.keeper.obstacles == {}
    (told,) = seen(engine, server(engine, app_done_below=0.9))
    assert told.kind is Standing.LITTLE_TO_GAIN
