"""What the requirements of jobs were locked to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class LockedEnvironment:
    """The packages that jobs run with, as name==version.

    `asked` is the hash of the requirements file, `lock` names what it asked for on one kind of machine.
    """

    project_id: str
    asked: str
    lock: str
    name: str
    python: str
    packages: tuple[str, ...]
    job_id: str
    made_at: datetime
