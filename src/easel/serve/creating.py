"""Creates that may be repeated: the same Idempotency-Key gets the first answer and makes nothing new."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Header, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from sqlalchemy.exc import IntegrityError

from easel.errors import Conflict
from easel.records.identity import Caller
from easel.serve.state import app_state
from easel.store import idempotency
from easel.store.engine import Store, Tx
from easel.store.idempotency import StoredResponse

KeyHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="Any unique text. A repeated create with the same key answers as the first one did",
    ),
]


@dataclass(frozen=True, slots=True)
class Creating:
    store: Store
    key: str | None
    where: str

    def __call__(
        self,
        caller: Caller,
        body: BaseModel,
        make: Callable[[Tx], BaseModel],
        *,
        status: int = 201,
        once: Callable[[dict[str, Any]], dict[str, Any]] = lambda answer: answer,
    ) -> JSONResponse:
        """Run `make` in one transaction with the record of its answer, less what is shown only `once`."""
        asked = self._fingerprints(body)
        try:
            return self._attempt(caller, asked, make, status, once)
        except IntegrityError:
            # The same key came in twice at once: the other one has committed, so now it is a repetition.
            return self._attempt(caller, asked, make, status, once)

    def _fingerprints(self, body: BaseModel) -> tuple[str, str]:
        """Returns that of what is asked for, and that of the same as releases up to 0.2 wrote it.

        Without what is as it would be anyway: a body that gains a field with a default in an upgrade is still the same.
        """
        texts = (body.model_dump_json(exclude_defaults=True), body.model_dump_json())
        first, before = (hashlib.sha256(f"{self.where}\n{text}".encode()).hexdigest() for text in texts)
        return first, before

    def _attempt(
        self,
        caller: Caller,
        asked: tuple[str, str],
        make: Callable[[Tx], BaseModel],
        status: int,
        once: Callable[[dict[str, Any]], dict[str, Any]],
    ) -> JSONResponse:
        with self.store.write() as tx:
            if self.key and (known := idempotency.recall(tx, caller.user.id, self.key)):
                if known.fingerprint not in asked:
                    raise Conflict("this Idempotency-Key was used for another request: use a new one")
                return JSONResponse(dict(known.body), known.status, {"Idempotency-Replayed": "true"})
            answer = make(tx).model_dump(mode="json")
            if self.key:
                kept = StoredResponse(asked[0], status, once(dict(answer)))
                idempotency.remember(tx, caller.user.id, self.key, kept)
        return JSONResponse(answer, status)


async def creating(request: Request, key: KeyHeader = None) -> Creating:
    """A coroutine, because a plain function would be sent to another thread and back for nothing."""
    return Creating(app_state(request).store, key, f"{request.method} {request.url.path}")


Create = Annotated[Creating, Depends(creating)]
