from __future__ import annotations

from datetime import timedelta

from sqlalchemy import update

from easel.ids import UserId
from easel.store.engine import Store
from easel.store.idempotency import KEPT, StoredResponse, forget_old, recall, remember
from easel.store.schema.identity import idempotency


def test_answers_are_kept_for_two_days_and_then_forgotten(store: Store) -> None:
    ana = UserId("usr_ana")
    with store.write() as tx:
        for key in ("old", "new"):
            remember(tx, ana, key, StoredResponse("f", 201, {"id": key}))
        past = tx.now - KEPT - timedelta(seconds=1)
        tx.execute(update(idempotency).where(idempotency.c.key == "old").values(created_at=past))
        assert forget_old(tx) == 1
        assert recall(tx, ana, "old") is None
        assert recall(tx, ana, "new") == StoredResponse("f", 201, {"id": "new"})
