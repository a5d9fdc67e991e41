"""A create that is repeated is the same one also when the server was upgraded in between."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime

import pytest
from pydantic import BaseModel

from easel.errors import Conflict
from easel.ids import TokenId, UserId
from easel.records.identity import Caller, User
from easel.serve.creating import Creating
from easel.store import idempotency
from easel.store.engine import Store
from easel.store.idempotency import StoredResponse


class Before(BaseModel):
    name: str
    note: str = ""


class After(Before):
    colour: str = "white"


class Made(BaseModel):
    id: str


ANA = Caller(User(UserId("usr_ana"), "ana", False, datetime(2026, 1, 1, tzinfo=UTC), None), TokenId("tok"))
WHERE = "POST /things"


def create(store: Store, body: BaseModel, id_: str) -> str:
    answer = Creating(store, "k", WHERE)(ANA, body, lambda _: Made(id=id_))
    return str(json.loads(bytes(answer.body))["id"])


def test_a_body_that_gained_a_field_with_a_default_is_still_the_same(store: Store) -> None:
    assert create(store, Before(name="a"), "first") == "first"
    assert create(store, After(name="a"), "second") == "first"
    assert create(store, After(name="a", note="", colour="white"), "third") == "first"
    for other in (After(name="a", colour="red"), After(name="b")):
        with pytest.raises(Conflict):
            create(store, other, "fourth")


def test_what_an_earlier_release_remembered_is_known_again(store: Store) -> None:
    body = Before(name="a")
    told = hashlib.sha256(f"{WHERE}\n{body.model_dump_json()}".encode()).hexdigest()
    with store.write() as tx:
        idempotency.remember(tx, ANA.user.id, "k", StoredResponse(told, 201, {"id": "first"}))
    assert create(store, body, "second") == "first"
