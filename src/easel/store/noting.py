"""The entry of the request that this thread works for: a change takes it along into its transaction."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class RequestNote:
    """What is known of a request so far. `kept`: a transaction of it was committed, and the note with it."""

    key: str
    address: str
    method: str
    route: str
    path: str
    actor: str | None = None
    actor_name: str | None = None
    token: str | None = None
    project_id: str | None = None
    refused: bool = False
    status: int | None = None
    """What came of a websocket that was opened only to say why it is refused."""
    kept: bool = False
    jobs: tuple[str, ...] = ()
    """Jobs that it submitted, where traces are kept."""

    def facts(self) -> dict[str, Any]:
        names = ("address", "method", "route", "path", "actor", "actor_name", "token", "project_id")
        return {name: getattr(self, name) for name in names}


noted: ContextVar[RequestNote | None] = ContextVar("noted", default=None)
