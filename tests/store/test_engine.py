"""What errors of the database say, and what they do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.pool import QueuePool

from easel.errors import Misconfigured, TryLater
from easel.store import identity
from easel.store.engine import Store
from easel.store.schema.identity import users
from easel.testing.databases import new_sqlite


def test_a_damaged_database_gets_words_and_the_way_back(tmp_path: Path) -> None:
    file = tmp_path / "easel.sqlite"
    new_sqlite(file)
    content = file.read_bytes()
    for damaged in (b"no database at all" * 1000, content[:100] + b"\xff" * (len(content) - 100)):
        file.write_bytes(damaged)
        store = Store(f"sqlite:///{file}")
        with pytest.raises(Misconfigured, match=r"damaged.*easel restore"), store.read() as tx:
            identity.any_user(tx)
        store.close()


def test_a_connection_that_is_slow_to_begin_is_waited_for_as_long_as_one_that_others_use() -> None:
    """A busy machine was told that its database is away, for three seconds were too few to greet a connection."""
    store = Store("postgresql://easel@127.0.0.1:1/easel")
    asked: list[dict[str, Any]] = []
    event.listen(store.engine, "do_connect", lambda *given: asked.append(given[-1]))
    with pytest.raises(TryLater, match="not available"), store.read():
        pass
    pool = store.engine.pool
    assert isinstance(pool, QueuePool)
    assert [each["connect_timeout"] for each in asked] == [pool.timeout()]
    store.close()


def test_an_error_of_the_database_quotes_no_value(store: Store) -> None:
    row = {"id": "a-secret", "name": "ana", "home": "prj_1", "platform_admin": False}
    row["created_at"] = store.clock.now()
    with store.write() as tx:
        tx.execute(insert(users), row)
    with pytest.raises(IntegrityError) as caught, store.write() as tx:
        tx.execute(insert(users), row)
    assert "a-secret" not in f"{caught.value} {caught.value.orig}"
