"""One line of the history."""

from __future__ import annotations

from easel.wire.model import Answer, Json, Moment


class Event(Answer):
    seq: int
    at: Moment
    kind: str
    subject: str
    project_id: str | None
    actor: str | None
    actor_name: str | None = None
    body: Json
