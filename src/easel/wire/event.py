"""One line of the history."""

from __future__ import annotations

from typing import Annotated

from easel.wire.model import Answer, Field, Json, Moment


class Event(Answer):
    seq: int
    at: Moment
    kind: str
    subject: str
    subject_name: Annotated[
        str | None,
        Field(description="With names in place of ids; told in pages, not in streams"),
    ] = None
    project_id: str | None
    actor: str | None
    actor_name: str | None = None
    body: Json
