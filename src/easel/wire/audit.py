"""The audit as clients see it."""

from __future__ import annotations

from typing import Annotated

from easel.wire.model import Answer, Field, Moment


class AuditEntry(Answer):
    seq: int
    at: Moment
    actor: Annotated[str | None, Field(description="A user's id; null where nobody was logged in")]
    actor_name: str | None
    token: Annotated[str | None, Field(description="The id of the token or of the session's token")]
    project_id: str | None
    address: str
    method: str
    route: Annotated[
        str, Field(description="The template of the address, such as /api/v1/projects/{project}")
    ]
    path: str
    status: Annotated[int, Field(description="The HTTP status; 0 where no answer was given")]
    outcome: Annotated[str, Field(description="allowed, refused, failed or unanswered")]
    count: Annotated[int, Field(description="So many equal reads within a moment")]
    request_id: str
    hash: Annotated[str, Field(description="SHA-256 over the hash of the entry before and this entry")]


class AuditVerdict(Answer):
    whole: bool
    entries: int
    first: int
    last: int
    hash: Annotated[str, Field(description="The hash of the last entry that fits: note it elsewhere")]
    broken_at: Annotated[int | None, Field(description="The first entry that does not fit")]
    why: str
