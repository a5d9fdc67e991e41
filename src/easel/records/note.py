"""A note: what a person wrote about a job, a model or a file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class ArtifactNote:
    """One note. `user` is the writer's name."""

    id: str
    artifact_id: int
    user_id: str
    user: str
    text: str
    written_at: datetime
