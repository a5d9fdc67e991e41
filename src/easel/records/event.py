"""One line of the append-only history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from easel.ids import ProjectId, UserId


@dataclass(frozen=True, slots=True)
class Event:
    """`kind` is `noun.verb` such as `project.created`; `subject` is the id of the thing that changed."""

    seq: int
    at: datetime
    kind: str
    subject: str
    project_id: ProjectId | None
    actor: UserId | None
    body: Mapping[str, Any]
